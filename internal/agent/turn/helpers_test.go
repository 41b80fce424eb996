package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// agent is an engine whose agent does in each turn what the test wants, and answers. Its compactions succeed.
type agent struct {
	asked     []engine.Request
	acts      func(turn int, use func(tool, input string) error) error // turn counts from 1; nil: it only answers
	answers   []string                                                 // of its turns; "done" after these
	brief     bool                                                     // only its result is recorded
	compacted []engine.Request
	wish      string // instructions of the latest compaction
	plan      func(engine.Request) (engine.Plan, error)
}

func (a *agent) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	a.asked = append(a.asked, r)
	if r.Session.Fork {
		r.Session.ID += "-fork"
	}
	if !a.brief || len(a.asked) == 1 {
		if err := sink(runlog.Event{Type: runlog.Session, Session: cmp.Or(r.Session.ID, "s-1")}); err != nil {
			return engine.Result{}, err
		}
	}
	if a.acts != nil {
		use := func(tool, input string) error {
			if result := tools.Call(ctx, tool, json.RawMessage(input)); result.IsError {
				return errors.New(result.Text)
			}
			return nil
		}
		if err := a.acts(len(a.asked), use); err != nil {
			return engine.Result{}, err
		}
	}
	text := "done"
	if n := len(a.asked); n <= len(a.answers) {
		text = a.answers[n-1]
	}
	events := []runlog.Event{{Type: runlog.Result, Text: text}, {Type: runlog.Text, Text: text}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{Out: 1}}}
	if a.brief {
		events = events[:1]
	}
	for _, e := range events {
		if err := sink(e); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{Session: r.Session.ID, Text: text}, nil
}

func (a *agent) Plan(r engine.Request, _ engine.Tools) (engine.Plan, error) {
	if a.plan != nil {
		return a.plan(r)
	}
	return engine.Plan{Model: r.Model.Name}, nil
}

func (a *agent) Compact(_ context.Context, r engine.Request, instructions string, sink engine.Sink) (engine.Compaction, error) {
	a.compacted, a.wish = append(a.compacted, r), instructions
	return engine.Compaction{Session: "s-2"}, sink(runlog.Event{Type: runlog.Compacted, Session: "s-2"})
}

// clockOf gives a runner a clock that only the test advances.
func clockOf(r *run.Runner) *time.Time {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	r.Disk.Now, r.Sessions.Disk.Now, r.Runs.Disk.Now, r.Questions.Disk.Now = clock, clock, clock, clock
	return &now
}

// carrier delivers every message, and keeps it.
type carrier struct{ sent []outbox.Message }

func (*carrier) Name() string { return "test" }

func (c *carrier) Carry(_ context.Context, m outbox.Message, _ []string, _ func(string)) (outbox.Fate, error) {
	c.sent = append(c.sent, m)
	return outbox.Sent, nil
}

// forkOf returns the open fork; nil if none is.
func forkOf(t *testing.T, r *run.Runner) *session.Fork {
	t.Helper()
	f, open, err := r.Sessions.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !open {
		return nil
	}
	return &f
}

// forkEvents returns what a run has recorded about forks, and how often its agent was reminded.
func forkEvents(t *testing.T, r *run.Runner, id string) (events []string, nudges int) {
	t.Helper()
	for e, err := range r.Runs.Events(id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case runlog.Fork:
			events = append(events, e.Tool+" "+e.Text)
		case runlog.Nudge:
			nudges++
		}
	}
	return events, nudges
}
