package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The kinds of sources that are treated in a way of their own. The others are called as people call them.
const (
	kindResult  = "tool result"
	kindUpdates = "updates"
	kindTask    = "task"
	kindRequest = "request"
	kindMessage = "message" // to the agent, in a conversation
)

// source is a text that a run has read.
type source struct {
	Step

	text  string
	whole bool // Line is that of an event, which is one line; else that of the beginning of the text
	match match
}

// mostHops is how many updates a trace follows, one after the other.
const mostHops = 4

// mostTurns is how many earlier runs of a conversation are searched if the run itself has read too few of the words.
const mostTurns = 20

// explain adds the run and the sources of what it said. hops is the number of updates that led to the run.
func (t *Tracer) explain(ctx context.Context, r runlog.Record, s runlog.Saying, words []string, hops int) error {
	t.run(r)
	found := t.sources(r, s, words)
	for back, earlier := r.Previous, 0; back != "" && earlier < mostTurns && !enough(found, words); earlier++ {
		before, known := t.load(back)
		if !known {
			break
		}
		if more := t.sources(before, runlog.Saying{}, words); held(more) > held(found) {
			found = append(more, found...)
		}
		back = before.Previous
	}
	found = best(found)
	if len(found) == 0 && len(words) > 0 {
		const why = "nothing that this run had read holds the words"
		t.add(Step{Step: Unknown, Run: r.ID, Of: len(words), Why: why, Command: "ollim run log " + r.ID})
	}
	var sentences []source
	for _, f := range found {
		if before, known := t.load(f.Run); known {
			t.run(before)
		}
		f.Words, f.Of, f.Text = f.match.words, len(words), f.match.excerpt
		f.Command = cmp.Or(f.Command, t.command(f))
		if t.add(f.Step); f.Kind == kindUpdates && hops < mostHops {
			sentences = append(sentences, f)
		}
	}
	for _, f := range sentences {
		if err := t.follow(ctx, f, words, hops); err != nil {
			return err
		}
	}
	return nil
}

// held returns the largest number of words in a source that had them first: not in the task, nor in a request, which has the whole
// conversation.
func held(found []source) (n int) {
	for _, f := range found {
		if f.Kind != kindTask && f.Kind != kindMessage && f.Kind != kindRequest {
			n = max(n, len(f.match.words))
		}
	}
	return n
}

// enough reports whether the sources hold at least half of the words.
func enough(found []source, words []string) bool { return 2*held(found) >= len(words) }

// follow adds the update that a run was told and that holds the most words, and explains the run that reported it.
func (t *Tracer) follow(ctx context.Context, from source, words []string, hops int) error {
	all, err := t.updates(ctx)
	if err != nil {
		return err
	}
	var chosen *told
	n := 0
	for _, u := range slices.Backward(all) {
		first, _, _ := strings.Cut(u.Message, "\n")
		if m := find(u.Message, words); len(m.words) > n && strings.Contains(from.text, first) {
			chosen, n = &u, len(m.words)
		}
	}
	if chosen == nil || t.explained[chosen.By] {
		return nil
	}
	return t.update(ctx, *chosen, words, hops+1)
}

// best returns the sources that hold the most words, the best first. The task comes last, because the message answers it.
func best(found []source) []source {
	rank := func(s source) int { return slices.Index([]string{kindRequest, kindTask, kindMessage}, s.Kind) }
	slices.SortStableFunc(found, func(a, b source) int {
		return cmp.Or(
			cmp.Compare(max(rank(a), 0), max(rank(b), 0)), cmp.Compare(len(b.match.words), len(a.match.words)), cmp.Compare(rank(a), rank(b)),
		)
	})
	if len(found) > most {
		found = found[:most]
	}
	if len(found) == 0 {
		return nil
	}
	least := len(found[0].match.words)
	return slices.DeleteFunc(found, func(s source) bool { return 2*len(s.match.words) < least })
}

// sources returns the texts that a run had read before it said something, and that hold words. Without a line all of them count.
func (t *Tracer) sources(r runlog.Record, s runlog.Saying, words []string) (found []source) {
	keep := func(f source) {
		if f.match = find(f.text, words); len(f.match.words) > 0 {
			f.Step.Step, f.Run = Source, r.ID
			if !f.whole {
				f.Line += f.match.line
			}
			found = append(found, f)
		}
	}
	uses := map[string]runlog.Event{}
	for line, e := range t.Runs.Numbered(r.ID) {
		switch {
		case s.Line > 0 && line >= s.Line:
		case e.Type == runlog.ToolUse:
			uses[e.ToolID] = e
		case e.Type == runlog.ToolResult:
			f := source{Step: Step{Kind: kindResult, At: e.At, Tool: e.Tool, File: t.events(r.ID), Line: line}, text: e.Text, whole: true}
			if use, known := uses[e.ToolID]; known {
				f.Tool, f.Input = use.Tool, string(use.Input)
			}
			if e.File != "" {
				f.File, f.Line, f.whole = t.Home.Dir.Relative(t.Home.Dir.Run(r.ID, filepath.Base(e.File))), 1, false
			}
			keep(f)
		}
	}
	for _, f := range t.prompt(r) {
		keep(f)
	}
	if f, kept := t.earlier(r, s.At, words, found); kept {
		keep(f)
	}
	return found
}

// prompt returns the parts of a run's prompt that say what happened: data, updates, answers and the task.
func (t *Tracer) prompt(r runlog.Record) (parts []source) {
	file := t.Home.Dir.Run(r.ID, "prompt.txt")
	data, err := store.Read(file)
	if err != nil {
		return nil
	}
	part := func(kind string, from, to int) {
		f := Step{Kind: kind, At: r.Started, File: t.Home.Dir.Relative(file), Line: 1 + bytes.Count(data[:from], []byte("\n"))}
		parts = append(parts, source{Step: f, text: string(data[from:to])})
	}
	task := kindTask
	if !r.OfJob() {
		task = kindMessage
	}
	if len(r.Parts) == 0 {
		said := prompt.Said()(string(data))
		if at := bytes.Index(data, []byte(said)); at >= 0 {
			part(task, at, at+len(said))
		}
		return parts
	}
	for _, p := range r.Parts {
		from, to := p.At, p.At+p.Bytes
		if from < 0 || from > to || to > len(data) { // the file was changed
			continue
		}
		switch p.Kind {
		case prompt.KindData:
			part(prompt.DataName(string(data[from:to])), from, to)
		case prompt.KindUpdates:
			part(kindUpdates, from, to)
		case prompt.KindAnswer:
			part("answer of the owner", from, to)
		case prompt.KindBody:
			part(task, from, to)
		}
	}
	return parts
}

// earlier returns the first request of a run if it holds more words than each other source, and one that none of them holds. They
// come from the session's earlier turns, from the system prompt or from the tools.
func (t *Tracer) earlier(r runlog.Record, until time.Time, words []string, found []source) (source, bool) {
	known := held(found)
	if known == len(words) {
		return source{}, false
	}
	list, err := t.Home.Requests.Exchanges(r.ID)
	if err != nil || len(list) == 0 || !until.IsZero() && list[0].At.After(until) {
		return source{}, false
	}
	text := t.body(r.ID, list[0].Number)
	has := find(text, words).words
	for _, f := range found {
		has = slices.DeleteFunc(has, func(word string) bool { return slices.Contains(f.match.words, word) })
	}
	if len(has) == 0 || len(find(text, words).words) <= known {
		return source{}, false
	}
	s := Step{Kind: kindRequest, At: list[0].At, Command: requestCommand(r.ID, list[0].Number)}
	return source{Step: s, text: text, whole: true}, true
}

// command returns the command that shows a source: the first request that held it, or the log of the run.
func (t *Tracer) command(f source) string {
	list, _ := t.Home.Requests.Exchanges(f.Run)
	for _, x := range list {
		if !x.At.Before(f.At) && len(find(t.body(f.Run, x.Number), f.match.words).words) == len(f.match.words) {
			return requestCommand(f.Run, x.Number)
		}
	}
	return "ollim run log " + f.Run
}

func requestCommand(run string, n int) string {
	return fmt.Sprintf("ollim run show %s --request %d", run, n)
}

// body returns the texts in the body of a request, each from a line of its own on; "" if it cannot be read.
func (t *Tracer) body(run string, n int) string {
	data, _, err := t.Home.Requests.Read(run, n)
	if err != nil {
		return ""
	}
	var text strings.Builder
	in := json.NewDecoder(bytes.NewReader(data))
	for token, err := in.Token(); err == nil; token, err = in.Token() {
		if s, is := token.(string); is {
			text.WriteString(s + "\n")
		}
	}
	return text.String()
}
