package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// demo plays and shows the demonstration in its own directory.
type demo struct {
	d     *Deps
	inbox string // what was delivered
	seen  int    // messages of it already shown
}

func (s *demo) play(ctx context.Context) error {
	const day = 24 * time.Hour
	acts := []struct {
		job   string
		after time.Duration
		title string
	}{
		{"daily-market", 0, "the first fire starts a session"},
		{"daily-market", day, "the second fire continues it; the oil price has moved"},
		{"daily-market", 2 * day, "the third fire; the agent decides to compact its session"},
		{"evening", 2*day + 9*time.Hour, "a turn of the main conversation"},
	}
	if err := s.say("A persistent routine, fired on three days of an invented week.\n" +
		"A script takes the place of the model; everything else is real. The output below is read from the state files.\n"); err != nil {
		return err
	}
	for _, act := range acts {
		if err := s.act(ctx, act.job, demoStart().Add(act.after), act.title); err != nil {
			return err
		}
	}
	return nil
}

// act fires one job at one time and shows what its record holds.
func (s *demo) act(ctx context.Context, job string, at time.Time, title string) error {
	s.d.Now = func() time.Time { return at }
	h, err := s.d.Home()
	if err != nil {
		return err
	}
	if err := s.say("\n%s  $ ollim fire %s\n  (%s)\n", clock(at.In(h.Config.Zone)), job, title); err != nil {
		return err
	}
	r, err := h.Runner(false).Fire(ctx, job, runner.Options{})
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %s", job, r.Outcome), err)
	}
	if r, err = h.Runs().Load(r.ID); err != nil {
		return err
	}
	if err := s.reported(h, r); err != nil {
		return err
	}
	for e, err := range h.Runs().Events(r.ID, nil) {
		if err != nil {
			return err
		}
		if head, text := demoLine(r, e); head != "" {
			if err := s.say("  %-10s %s\n", head, wrap(text, 13)); err != nil {
				return err
			}
		}
	}
	return s.after(ctx, h, r)
}

// demoLine is an event in the demo's words; without a head it is omitted.
func demoLine(r runlog.Record, e runlog.Event) (head, text string) {
	switch e.Type {
	case runlog.Session:
		if r.SessionBefore == "" {
			return "session", e.Session + ", new"
		}
		return "session", e.Session + ", resumed"
	case runlog.Ping:
		return "ping", e.Text
	case runlog.Report:
		return "report", e.Text
	case runlog.Text:
		return "agent", e.Text
	case runlog.CompactWish:
		return "compact", "requested by the agent: " + e.Text
	case runlog.Compacted:
		return "compacted", fmt.Sprintf("%s -> %s, context %d -> %d tokens", e.Parent, e.Session, e.Before, e.After)
	case runlog.UsageEvent:
		return "context", fmt.Sprintf("%d tokens", e.Usage.In)
	}
	return "", ""
}

// told shows the pending updates that stand in the prompt.
func (s *demo) reported(h app.Home, r runlog.Record) error {
	prompt, err := store.Read(h.Dir.Run(r.ID, "prompt.txt"))
	if err != nil {
		return err
	}
	_, updates, found := strings.Cut(string(prompt), "RECENT BACKGROUND UPDATES")
	if !found {
		return nil
	}
	updates, _, _ = strings.Cut(updates, "\n\n")
	_, updates, _ = strings.Cut(updates, "\n")
	return s.say("  updates    %s\n", wrap(updates, 13))
}

// after shows what the fire left outside its record.
func (s *demo) after(ctx context.Context, h app.Home, r runlog.Record) error {
	number := 0
	for text, err := range store.Lines[string](s.inbox, nil) {
		if err != nil {
			return err
		}
		if number++; number > s.seen {
			s.seen = number
			if err := s.say("  delivered  %s\n", wrap(text, 13)); err != nil {
				return err
			}
		}
	}
	pending, err := h.Updates().Peek(ctx)
	if err != nil {
		return err
	}
	return s.say("  record     %s: %s, %d pending updates afterwards\n", r.ID, r.Outcome, len(pending))
}

func (s *demo) say(format string, args ...any) error {
	_, err := fmt.Fprintf(s.d.Out, format, args...)
	return err
}

// wrap breaks a text at 100 columns; later lines are indented.
func wrap(text string, indent int) string {
	const width = 100
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		if column+1+len(word) > width {
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		} else if i > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
