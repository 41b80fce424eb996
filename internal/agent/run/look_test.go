package run

import (
	"errors"
	"os"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestLookAtADeadRun: a run without a process has cost what its events say, less what was settled; nothing is known of it if they are
// unreadable, if it has continued since, or if its machine may have lost some of them.
func TestLookAtADeadRun(t *testing.T) {
	t.Parallel()
	here, before := process.Self(), process.Self()
	before.Boot = "another"
	for name, c := range map[string]struct {
		record     runlog.Record
		done       bool
		unreadable bool
		want       float64
	}{
		"killed":               {record: runlog.Record{Process: runlog.Process{ID: here}}, want: 0.25},
		"ended":                {record: runlog.Record{Process: runlog.Process{ID: here}}, done: true, want: 0.25},
		"rebooted":             {record: runlog.Record{Process: runlog.Process{ID: before}}, want: -1},
		"ended, then rebooted": {record: runlog.Record{Process: runlog.Process{ID: before}}, done: true, want: 0.25},
		"settled in part":      {record: runlog.Record{Settled: 0.125}, want: 0.125},
		"settled":              {record: runlog.Record{Settled: 1}, want: 0},
		"continued":            {record: runlog.Record{Continued: 1}, want: -1},
		"unreadable":           {unreadable: true, want: -1},
	} {
		c.record.Engine = engine.Native
		r, run := bench(t, c.record)
		account := runlog.Record{ID: run.ID}.Account() // of the first part
		err := run.Event(t.Context(), runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}})
		if c.done {
			err = errors.Join(err, run.Finish(runlog.OK, ""))
		}
		if events := r.Home.Run(run.ID, "events.jsonl"); c.unreadable {
			err = errors.Join(err, os.Remove(events), os.Mkdir(events, 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, alive := r.accountOf(run, Spec{}).look(account); got != c.want || alive {
			t.Errorf("%s: %v, alive %v, want %v", name, got, alive, c.want)
		}
	}
}

// TestSettleWithoutABill: if the cost of a run cannot be read, its whole reservation counts, and a warning says so. A run that reached no
// engine costs nothing.
func TestSettleWithoutABill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []runlog.Event
		broken bool
		spent  float64
		runs   int
		warns  int
	}{
		"not begun":  {},
		"begun":      {events: []runlog.Event{{Type: runlog.Session, Session: "s"}, {Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}}, spent: 0.25, runs: 1},
		"free":       {events: []runlog.Event{{Type: runlog.Session, Session: "s"}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{}}}, runs: 1},
		"unreadable": {broken: true, spent: 1, runs: 1, warns: 1},
	} {
		r, run := bench(t, runlog.Record{Engine: engine.Native})
		a, warned := r.accountOf(run, Spec{}), 0
		a.warn = func(err error) {
			if err != nil {
				warned++
			}
		}
		a.settle(t.Context()) // nothing is reserved yet
		_, err := a.reserve(t.Context())
		for _, e := range c.events {
			err = errors.Join(err, run.Event(t.Context(), e))
		}
		if c.broken {
			err = errors.Join(err, os.Mkdir(r.Home.Run(run.ID, "events.jsonl"), 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
		a.settle(t.Context())
		totals, err := r.Spend.Totals()
		if err != nil || totals.Today.Spent != c.spent || totals.Today.Reserved != 0 || totals.Runs != c.runs || warned != c.warns {
			t.Errorf("%s: %+v, warned %d times, %v", name, totals.Today, warned, err)
		}
	}
}
