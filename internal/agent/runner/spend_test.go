package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

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

// fake is an engine that costs money: it plays events and ends with err.
type fake struct {
	events []runlog.Event
	err    error
}

func (e fake) Run(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	for _, event := range e.events {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{}, e.err
}

func (fake) Plan(engine.Request, engine.Tools) (engine.Plan, error) { return engine.Plan{}, nil }
func (fake) Compact(context.Context, engine.Request, string, engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, errors.New("not asked for")
}

func newRunner(t *testing.T, e engine.Engine) *Runner {
	t.Helper()
	dir := paths.Dir(t.TempDir())
	disk := store.Disk{Now: time.Now, Warn: func(message string) { t.Error(message) }}
	if err := store.Replace(dir.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"@daily\"\nbackground: true\n---\nGo.\n")); err != nil {
		t.Fatal(err)
	}
	stores := state.Of(dir, disk, time.UTC)
	stores.Queue.Stop = func(run string) error { return Interrupt(stores.Runs, run) }
	stores.Queue.Runs = func(string) queue.Fate { return queue.Fate{} }
	stores.Spend.Limits = spend.Limits{PerRun: 1, PerDay: 5, PerMonth: 50, RunsPerDay: 10}
	stores.Spend.Past = func(time.Time) ([]spend.Past, error) { return nil, nil }
	return &Runner{
		Home: dir, Disk: disk, Zone: time.UTC, Random: rand.Reader, Stores: stores, Settings: Settings{Engine: "costly"},
		Host: Host{
			Process: func() runlog.Process { return runlog.Process{ID: process.Self()} },
			Sleep:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Sealing: Sealing{Mode: config.SealOff},
		},
		Outbox:  outbox.Post{Home: dir, Disk: disk},
		Engines: func(string) (engine.Engine, error) { return e, nil },
	}
}

// TestWhatARunCosts: the accounts hold the cost that an engine reported, the highest possible cost if it reported none, and nothing
// of a run that never reached it.
func TestWhatARunCosts(t *testing.T) {
	t.Parallel()
	began := runlog.Event{Type: runlog.Session, Session: "x"}
	request := runlog.Event{Type: runlog.Request, Most: 0.125}
	going := runlog.Event{Type: runlog.Request, Reported: 0.5, Most: 0.125}
	reported := runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}
	for name, c := range map[string]struct {
		engine fake
		spent  float64
		runs   int
	}{
		"reported":                   {fake{[]runlog.Event{began, reported}, nil}, 0.25, 1},
		"reported, then failed":      {fake{[]runlog.Event{began, reported}, errors.New("no")}, 0.25, 1},
		"killed before it reported":  {fake{[]runlog.Event{began}, errors.New("killed")}, 1, 1},
		"killed in a second start":   {fake{[]runlog.Event{began, reported, began}, errors.New("killed")}, 1, 1},
		"reported much, then killed": {fake{[]runlog.Event{began, reported, reported, began}, errors.New("killed")}, 1, 1},
		"free of charge":             {fake{[]runlog.Event{began, {Type: runlog.UsageEvent}}, engine.ErrUnavailable}, 0, 1},
		"overloaded at first":        {fake{[]runlog.Event{began, {Type: runlog.UsageEvent}, began, reported}, nil}, 0.25, 1},
		"killed at first":            {fake{[]runlog.Event{began, began, reported, reported}, nil}, 1.5, 1},
		"killed in a request":        {fake{[]runlog.Event{began, reported, request, request}, errors.New("killed")}, 0.375, 1},
		"killed between answers":     {fake{[]runlog.Event{began, request, going}, errors.New("killed")}, 0.625, 1},
		"reported after answers":     {fake{[]runlog.Event{began, request, going, reported}, nil}, 0.25, 1},
		"asked again":                {fake{[]runlog.Event{began, request, request, reported}, nil}, 0.25, 1},
		"never began":                {fake{nil, engine.ErrUnavailable}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRunner(t, c.engine)
			if _, err := NewFirer(f).Fire(t.Context(), "a", Options{}); !errors.Is(err, c.engine.err) {
				t.Fatalf("%v, want %v", err, c.engine.err)
			}
			totals, err := f.Spend.Totals()
			if err != nil {
				t.Fatal(err)
			}
			if totals.Today.Spent != c.spent || totals.Today.Reserved != 0 || totals.Runs != c.runs {
				t.Errorf("%+v, want %.2f spent by %d runs", totals, c.spent, c.runs)
			}
		})
	}
}

// TestKilledRunIsCountedByTheNext: a run whose process died leaves a reservation, which the next fire settles in full.
func TestKilledRunIsCountedByTheNext(t *testing.T) {
	t.Parallel()
	f := newRunner(t, fake{[]runlog.Event{{Type: runlog.Session, Session: "x"}, {Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}}, nil})
	f.Disk.Warn = func(string) {}
	id, err := runlog.NewID(time.Now().Add(-time.Minute), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	dead, err := f.Runs.Open(runlog.Record{ID: id, Subject: runlog.Subject{Job: "a", Name: "a"}, Started: time.Now(), Process: runlog.Process{ID: process.ID{PID: 1 << 30}}, Accounted: true, Reserved: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Spend.Reserve(t.Context(), spend.Claim{Run: id}, nil); err != nil {
		t.Fatal(err)
	}
	if err := dead.Event(t.Context(), runlog.Event{Type: runlog.Session, Session: "y"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Home.JobLock("a"), []byte(id+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFirer(f).Fire(t.Context(), "a", Options{}); err != nil {
		t.Fatal(err)
	}
	totals, err := f.Spend.Totals()
	if err != nil || totals.Today.Spent != 1.25 || totals.Today.Reserved != 0 {
		t.Errorf("%+v, %v: want 1.25 spent", totals, err)
	}
	if r, err := f.Runs.Load(id); err != nil || r.Outcome != runlog.Interrupted {
		t.Errorf("the dead run is %q, %v", r.Outcome, err)
	}
}
