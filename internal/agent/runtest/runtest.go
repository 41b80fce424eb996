// Package runtest makes runners and engines for the tests of run, fire and turn.
package runtest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// New returns a runner of a new directory with the routine a. Each warning fails the test.
func New(t *testing.T, e engine.Engine) *run.Runner {
	t.Helper()
	return In(t, t.TempDir(), store.Disk{Now: time.Now, Warn: func(message string) { t.Error(message) }}, e)
}

// In returns a runner of an empty directory with the routine a.
func In(t *testing.T, home string, disk store.Disk, e engine.Engine) *run.Runner {
	t.Helper()
	dir := paths.Dir(home)
	if err := store.Replace(dir.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"@yearly\"\nbackground: true\n---\nGo.\n")); err != nil {
		t.Fatal(err)
	}
	stores := state.Of(dir, disk, time.UTC)
	stores.Queue.Stop = func(run string) error { return stores.Runs.AskStop(run, "stopped by a new message") }
	stores.Queue.Runs = func(string) queue.Fate { return queue.Fate{} }
	stores.Spend.Limits = spend.Limits{PerRun: 1, PerDay: 5, PerMonth: 50, RunsPerDay: 10}
	stores.Spend.Past = func(time.Time) ([]spend.Past, error) { return nil, nil }
	return &run.Runner{
		Home: dir, Disk: disk, Zone: time.UTC, Random: rand.Reader, Stores: stores, Settings: run.Settings{Engine: "costly"},
		Host: run.Host{
			Process: func() runlog.Process { return runlog.Process{ID: process.Self()} },
			Sleep:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Sealing: run.Sealing{Mode: config.SealOff},
		},
		Outbox:  outbox.Post{Home: dir, Disk: disk},
		Engines: func(string) (engine.Engine, error) { return e, nil },
	}
}

// Fake is an engine that costs money: it plays events and ends with err.
type Fake struct {
	events []runlog.Event
	Err    error
}

// Plays returns an engine that plays events and ends with err.
func Plays(err error, events ...runlog.Event) Fake { return Fake{events, err} }

// Run plays the events.
func (e Fake) Run(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	for _, event := range e.events {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{}, e.Err
}

// Plan plans nothing.
func (Fake) Plan(engine.Request, engine.Tools) (engine.Plan, error) { return engine.Plan{}, nil }

// Compact fails.
func (Fake) Compact(context.Context, engine.Request, string, engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, errors.New("not asked for")
}

// Turn is an engine that only does what the test wants.
type Turn func(engine.Request) error

// Run does what the test wants in a session.
func (e Turn) Run(_ context.Context, request engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	for _, event := range []runlog.Event{{Type: runlog.Session, Session: "s"}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{}}} {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{Session: "s"}, e(request)
}

// Plan plans nothing.
func (Turn) Plan(engine.Request, engine.Tools) (engine.Plan, error) { return engine.Plan{}, nil }

// Compact fails.
func (Turn) Compact(context.Context, engine.Request, string, engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, errors.New("not asked for")
}

// Answering answers each turn by the number of the turn, and keeps what it was asked.
type Answering struct {
	Turn

	Asked *[]engine.Request
}

// Run answers.
func (e Answering) Run(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	*e.Asked = append(*e.Asked, r)
	answer := strings.Repeat("again ", len(*e.Asked)-1) + "done"
	id := r.Session.ID
	if id == "" {
		id = "s-1"
	}
	for _, event := range []runlog.Event{
		{Type: runlog.Session, Session: id}, {Type: runlog.Text, Text: answer}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{Out: 1}},
		{Type: runlog.Result, Text: answer},
	} {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{Session: id, Text: answer}, nil
}
