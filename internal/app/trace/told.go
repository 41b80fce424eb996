package trace

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// byMessage explains the message with an id: that of its run, of a notice, or the one that a messenger gave it.
func (t *Tracer) byMessage(ctx context.Context, id string) error {
	m := session.Message{MessageID: id}
	if _, known := t.load(m.Run()); !known || m.Number() == 0 {
		sent, _, err := t.Home.Sessions.ByMessage(ctx, id)
		if err != nil {
			return err
		}
		m = sent
	}
	if r, known := t.load(m.Run()); known {
		for _, s := range t.said(r) {
			if s.Number == m.Number() && s.Number > 0 {
				return t.message(ctx, r, s, telling(s.Text), 0)
			}
		}
	}
	return t.notice(func(m notice.Message) bool { return m.ID == id })
}

// byUpdate explains the update with an id.
func (t *Tracer) byUpdate(ctx context.Context, id string) error {
	all, err := t.updates(ctx)
	for _, u := range all {
		if u.ID() == id {
			return t.update(ctx, u, telling(u.Message), 0)
		}
	}
	return err
}

// byText explains the latest message that holds all words of a text. If there is none, it adds the texts of runs that do.
func (t *Tracer) byText(ctx context.Context, text string) error {
	words := needles(text)
	if len(words) == 0 {
		return nil
	}
	if err := t.toldByRun(ctx, text, words); err != nil || len(t.steps) > 0 {
		return err
	}
	query := plaintext.NewQuery(words)
	holds := func(text string) bool { _, found := query.Excerpt(text); return found }
	if err := t.notice(func(m notice.Message) bool { return holds(m.Text) }); err != nil || len(t.steps) > 0 {
		return err
	}
	all, err := t.updates(ctx)
	if err != nil {
		return err
	}
	for _, u := range slices.Backward(all) {
		if holds(u.Message) {
			return t.update(ctx, u, asked(text, u.Message), 0)
		}
	}
	if err := t.near(ctx, words); err != nil || len(t.steps) > 0 {
		return err
	}
	return t.near(ctx, telling(text))
}

// asked returns the words to look for in sources: those of the text in question, or those of the whole message if that text is short.
func asked(text, message string) []string {
	if words := telling(text); len(words) >= most {
		return words
	}
	return telling(message)
}

// toldByRun explains the latest message of a run that holds the words.
func (t *Tracer) toldByRun(ctx context.Context, text string, words []string) error {
	for f, err := range t.Runs.SearchTold(ctx, words) {
		if err != nil {
			return err
		}
		r, known := t.load(f.Run)
		if !known {
			continue
		}
		for _, s := range t.said(r) {
			// the final text of a turn stands in two events, of which the search finds the first
			if s.Line == f.Line || f.Type == runlog.Text && s.Kind == runlog.SaidAnswer && s.Line > f.Line {
				return t.message(ctx, r, s, asked(text, s.Text), 0)
			}
		}
	}
	return nil
}

// said returns what a run told the owner, oldest first.
func (t *Tracer) said(r runlog.Record) (said []runlog.Saying) {
	for line, e := range t.Runs.Numbered(r.ID) {
		said = runlog.Say(said, line, e)
	}
	spoken := r.Foreground || r.Kind == runlog.Ask
	return slices.DeleteFunc(said, func(s runlog.Saying) bool {
		return !s.Sent() || s.Kind == runlog.SaidAnswer && s.Number == 0 && !spoken
	})
}

// message adds the step of something that a run told the owner, and explains it.
func (t *Tracer) message(ctx context.Context, r runlog.Record, s runlog.Saying, words []string, hops int) error {
	step := Step{Step: Message, Kind: string(s.Kind), At: s.At, Run: r.ID, Text: s.Text, File: t.events(r.ID), Line: s.Line}
	if s.Number > 0 {
		step.ID = session.MessageID(r.ID, s.Number)
	}
	if s.Fate != "" && s.Fate != "sent" {
		step.Why = s.Fate
	}
	if s.Kind == runlog.SaidReport {
		step.Step, step.Kind = Update, ""
		all, err := t.updates(ctx)
		if err != nil {
			return err
		}
		for _, u := range all {
			if u.By == r.ID && u.Message == update.Clean(s.Text) {
				step.ID, step.Why = u.ID(), u.became()
			}
		}
	}
	t.add(step)
	return t.explain(ctx, r, s, words, hops)
}

// notice explains the latest of ollim's own messages that fits.
func (t *Tracer) notice(fits func(notice.Message) bool) error {
	if t.Own {
		return nil
	}
	var last *notice.Message
	for m, err := range t.Home.Notices.Said(time.Time{}) {
		if err != nil {
			return err
		}
		if fits(m) {
			last = &m
		}
	}
	if page, err := t.Home.Notices.Read(); err != nil {
		return err
	} else if i := slices.IndexFunc(page.Unsent, fits); i >= 0 {
		last = &page.Unsent[i]
	}
	if last == nil {
		return nil
	}
	t.add(Step{
		Step: Message, Kind: "notice", At: last.At, ID: last.ID, Run: last.Run, Name: last.Label, Text: last.Text,
		Why: "ollim itself, because of the cause " + last.Cause, Command: "ollim doctor",
	})
	if r, known := t.load(last.Run); known {
		t.run(r)
	}
	return nil
}

// told is an update, and what became of it.
type told struct {
	update.Update
	fate string // pending, popped, dropped or cleared
	to   string // the run that popped it, or who cleared it
}

func (u told) became() string {
	switch {
	case u.to == "":
		return u.fate
	case runlog.Began(u.to).IsZero():
		return u.fate + " by the " + u.to
	}
	return u.fate + " by run " + u.to
}

// updates returns all updates that are kept, oldest first.
func (t *Tracer) updates(ctx context.Context) ([]told, error) {
	if t.queue != nil {
		return t.queue, nil
	}
	for f, err := range t.Home.Updates.Fates(time.Time{}) {
		if err != nil {
			return nil, err
		}
		t.queue = append(t.queue, told{f.Update, f.Became, f.To})
	}
	pending, err := t.Home.Updates.Peek(ctx)
	for _, u := range pending {
		t.queue = append(t.queue, told{u, "pending", ""})
	}
	if t.Own {
		t.queue = slices.DeleteFunc(t.queue, func(u told) bool { _, known := t.load(u.By); return !known })
	}
	return t.queue, err
}

// update adds the step of an update and explains the run that reported it.
func (t *Tracer) update(ctx context.Context, u told, words []string, hops int) error {
	r, known := t.load(u.By)
	if known {
		for _, s := range t.said(r) {
			if s.Kind == runlog.SaidReport && update.Clean(s.Text) == u.Message {
				return t.message(ctx, r, s, words, hops)
			}
		}
	}
	step := Step{Step: Update, At: u.TS, ID: u.ID(), Text: u.Message, Why: u.became(), Command: "ollim update list --all"}
	switch {
	case known:
		step.Run = r.ID
	case u.By == "owner":
		step.Why += "; the owner added it"
	case u.By == "ollim":
		step.Why += "; ollim itself added it"
	case u.By != "":
		step.Why += fmt.Sprintf("; run %s reported it, whose record is gone", u.By)
	}
	t.add(step)
	if known { // the update is a message of ollim about the run
		return t.explain(ctx, r, runlog.Saying{At: u.TS}, words, hops)
	}
	if u.By == "ollim" {
		return t.notice(func(m notice.Message) bool { return m.Text == u.Message })
	}
	return nil
}

// near adds the latest texts of runs that hold words, one for each run.
func (t *Tracer) near(ctx context.Context, words []string) error {
	last := ""
	for f, err := range t.Runs.Search(ctx, words, prompt.Said()) {
		if err != nil {
			return err
		}
		r, known := t.load(f.Run)
		if !known || f.Run == last {
			continue
		}
		last = f.Run
		step := Step{Step: Near, Kind: string(f.Type), At: f.At, Run: f.Run, Name: r.Name, Text: f.Excerpt, Command: "ollim run log " + f.Run}
		if f.Line > 0 {
			step.File, step.Line = t.events(f.Run), f.Line
		}
		if t.add(step); len(t.steps) == most {
			break
		}
	}
	return nil
}
