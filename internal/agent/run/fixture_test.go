package run_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// actor is an engine that does what a test wants.
type actor struct {
	run     func(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) error
	compact func(sink engine.Sink) error
}

func (a *actor) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	return engine.Result{Session: "s", Text: "done"}, a.run(ctx, r, tools, sink)
}

func (*actor) Plan(engine.Request, engine.Tools) (engine.Plan, error) { return engine.Plan{}, nil }

func (a *actor) Compact(_ context.Context, _ engine.Request, _ string, sink engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, a.compact(sink)
}

// plays returns an actor that plays events, and compacts the session s to s2.
func plays(events ...runlog.Event) *actor {
	return &actor{
		run: func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
			return all(sink, events...)
		},
		compact: func(sink engine.Sink) error {
			return sink(runlog.Event{Type: runlog.Compacted, Session: "s2", Parent: "s"})
		},
	}
}

func all(sink engine.Sink, events ...runlog.Event) error {
	for _, e := range events {
		if err := sink(e); err != nil {
			return err
		}
	}
	return nil
}

// answered are the events of a turn that costs 0.25 USD.
func answered(more ...runlog.Event) []runlog.Event {
	events := append([]runlog.Event{{Type: runlog.Session, Session: "s"}, {Type: runlog.Text, Text: "done"}}, more...)
	return append(events, runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{In: 10, Out: 1}}, runlog.Event{Type: runlog.Result, Text: "done"})
}

// caller is an origin that does what a test wants; nil functions do nothing.
type caller struct {
	permit   error
	begin    func(*runlog.Record) error
	prepare  func(in prompt.Input) (prompt.Input, error)
	complete func(*engine.Request) error
	postpone func(*run.Later) error
	report   func(*runlog.Run)
	end      func(ctx context.Context, set *tools.Set)
}

func (c *caller) Permit() error { return c.permit }

func (c *caller) Begin(r *runlog.Record) error {
	if c.begin == nil {
		return nil
	}
	return c.begin(r)
}

func (c *caller) Prepare(_ context.Context, _ *tools.Set, in prompt.Input) (prompt.Input, error) {
	if c.prepare == nil {
		return in, nil
	}
	return c.prepare(in)
}

func (c *caller) Complete(r *engine.Request) error {
	if c.complete == nil {
		return nil
	}
	return c.complete(r)
}

func (c *caller) Postpone(_ context.Context, _ *runlog.Run, later *run.Later) error {
	if c.postpone == nil {
		return nil
	}
	return c.postpone(later)
}

func (c *caller) Report(_ context.Context, r *runlog.Run, _ error) {
	if c.report != nil {
		c.report(r)
	}
}

func (c *caller) End(ctx context.Context, set *tools.Set, _ error) {
	if c.end != nil {
		c.end(ctx, set)
	}
}

// routine is a run of the routine a, in the background and without a session that is kept.
func routine() run.Spec {
	return run.Spec{
		Identity:     run.Identity{Subject: runlog.Subject{Kind: string(job.Routine), Job: "a", Name: "a", Path: "routines/a.md"}},
		Input:        prompt.Input{Task: prompt.Task{Tag: "routine", Body: "Go.", Background: true}},
		Conversation: conversation.Isolated{},
		Limits:       run.Limits{Time: time.Hour},
		Origin:       &caller{},
	}
}

// fixture is a runner whose clock stands still, whose ids are the same each time, and whose warnings are kept.
type fixture struct {
	*run.Runner

	now    time.Time
	warned []string
	begun  run.Begun   // a run that a test has begun
	guard  *lock.Guard // on the job
}

func newFixture(t *testing.T, dir string, e engine.Engine) *fixture {
	t.Helper()
	s := &fixture{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	disk := store.Disk{Now: func() time.Time { return s.now }, Warn: func(text string) { s.warned = append(s.warned, text) }}
	s.Runner = runtest.In(t, dir, disk, e)
	s.Random = rand.NewChaCha8([32]byte{})
	return s
}

// begin begins a run.
func (s *fixture) begin(t *testing.T, spec run.Spec) {
	t.Helper()
	var err error
	if s.begun, err = s.Begin(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}

func engines(e engine.Engine) func(string) (engine.Engine, error) {
	return func(string) (engine.Engine, error) { return e, nil }
}

// reserved returns the money that is reserved, in USD.
func (s *fixture) reserved(t *testing.T) float64 {
	t.Helper()
	totals, err := s.Spend.Totals()
	if err != nil {
		t.Fatal(err)
	}
	return totals.Today.Reserved
}
