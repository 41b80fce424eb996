package fire

import (
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// TestWhatARunCosts: the accounts hold the cost that an engine reported, the highest possible cost if it reported none, and nothing
// of a run that never reached it.
func TestWhatARunCosts(t *testing.T) {
	t.Parallel()
	began := runlog.Event{Type: runlog.Session, Session: "x"}
	request := runlog.Event{Type: runlog.Request, Most: 0.125}
	going := runlog.Event{Type: runlog.Request, Reported: 0.5, Most: 0.125}
	reported := runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}
	for name, c := range map[string]struct {
		engine runtest.Fake
		spent  float64
		runs   int
	}{
		"reported":                   {runtest.Plays(nil, began, reported), 0.25, 1},
		"reported, then failed":      {runtest.Plays(errors.New("no"), began, reported), 0.25, 1},
		"killed before it reported":  {runtest.Plays(errors.New("killed"), began), 1, 1},
		"killed in a second start":   {runtest.Plays(errors.New("killed"), began, reported, began), 1, 1},
		"reported much, then killed": {runtest.Plays(errors.New("killed"), began, reported, reported, began), 1, 1},
		"free of charge":             {runtest.Plays(engine.ErrUnavailable, began, runlog.Event{Type: runlog.UsageEvent}), 0, 1},
		"overloaded at first":        {runtest.Plays(nil, began, runlog.Event{Type: runlog.UsageEvent}, began, reported), 0.25, 1},
		"killed at first":            {runtest.Plays(nil, began, began, reported, reported), 1.5, 1},
		"killed in a request":        {runtest.Plays(errors.New("killed"), began, reported, request, request), 0.375, 1},
		"killed between answers":     {runtest.Plays(errors.New("killed"), began, request, going), 0.625, 1},
		"reported after answers":     {runtest.Plays(nil, began, request, going, reported), 0.25, 1},
		"asked again":                {runtest.Plays(nil, began, request, request, reported), 0.25, 1},
		"never began":                {runtest.Plays(engine.ErrUnavailable), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := runtest.New(t, c.engine)
			if _, err := New(f).Fire(t.Context(), "a", Options{}); !errors.Is(err, c.engine.Err) {
				t.Fatalf("%v, want %v", err, c.engine.Err)
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
	f := runtest.New(t, runtest.Plays(nil, runlog.Event{Type: runlog.Session, Session: "x"}, runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}))
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
	if _, err := New(f).Fire(t.Context(), "a", Options{}); err != nil {
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
