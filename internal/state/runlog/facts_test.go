package runlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// damage makes of the record on disk what a power failure may leave of it: "gone", "empty", or that of another moment.
func (d *desk) damage(id string, left any) {
	d.t.Helper()
	var err error
	switch left := left.(type) {
	case Record:
		err = d.run(left).Save()
	case string:
		if err = os.RemoveAll(d.Home.Run(id)); err == nil && left == "empty" {
			err = errors.Join(os.MkdirAll(d.Home.Run(id), 0o700), os.WriteFile(d.Home.Run(id, "run.json"), nil, 0o600))
		}
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// TestRestore: whatever a power failure leaves of a record, Restore makes of it what was acknowledged, and nothing less.
func TestRestore(t *testing.T) {
	at := start
	slot := Record{Scheduled: &at}
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		record Record
		do     func(*testing.T, *desk, *Run) any // returns what is left on disk; nil: what was written
		want   Outcome                           // of the record that is there afterwards
		gone   bool
	}{
		"one that ended": {Record{}, func(t *testing.T, _ *desk, r *Run) any {
			must(t, r.Finish(OK, ""))
			return "gone"
		}, OK, false},
		"one whose end is empty": {Record{}, func(t *testing.T, _ *desk, r *Run) any {
			must(t, r.Finish(Failed, "why"))
			return "empty"
		}, Failed, false},
		"one whose end was not written": {Record{}, func(t *testing.T, _ *desk, r *Run) any {
			before := r.Record
			must(t, r.Finish(OK, ""))
			return before
		}, OK, false},
		"one of a slot that began": {slot, func(t *testing.T, _ *desk, r *Run) any {
			must(t, r.Begin(t.Context()))
			return "gone"
		}, "", false},
		"one of a slot that is about to begin": {slot, func(*testing.T, *desk, *Run) any { return "gone" }, "", true},
		"one by hand that began": {Record{}, func(t *testing.T, _ *desk, r *Run) any {
			must(t, r.Begin(t.Context()))
			return "gone"
		}, "", true},
		"one that did not take place": {slot, func(t *testing.T, _ *desk, r *Run) any {
			must(t, errors.Join(r.Begin(t.Context()), r.Remove()))
			return nil
		}, "", true},
		"one that ended when the fact was lost": {slot, func(t *testing.T, _ *desk, r *Run) any {
			must(t, r.Begin(t.Context()))
			r.Outcome, r.Finished = OK, &at
			return r.Record
		}, OK, false},
		"one that was closed after its process": {slot, func(_ *testing.T, d *desk, r *Run) any {
			before := r.Record
			d.closed(r.ID)
			return before
		}, Interrupted, false},
		"one that expired after it had waited":   {Record{}, waitedAnd(func(_ *desk, r *Run) error { return r.Finish(Expired, "") }), Expired, false},
		"one that continued after it had waited": {Record{}, waitedAnd(continued), "", false},
		"one that continued and ended afterwards": {Record{}, waitedAnd(func(d *desk, r *Run) error {
			return errors.Join(continued(d, r), d.run(d.load(r.ID)).Finish(OK, ""))
		}), OK, false},
		"one that continued, now without a file": {Record{}, func(t *testing.T, d *desk, r *Run) any {
			waitedAnd(continued)(t, d, r)
			return "empty"
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := d.open(test.record)
			d.now = d.now.Add(time.Minute)
			if left := test.do(t, d, r); left != nil {
				d.damage(r.ID, left)
			}
			for range 2 { // it may be repeated
				if _, err := d.Restore(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := d.Load(r.ID)
			if test.gone != errors.Is(err, fs.ErrNotExist) || !test.gone && err != nil || got.Outcome != test.want || got.Done() != (test.want != "") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// waitedAnd lets a run wait for an answer, calls more a minute later, and leaves the record that waits on disk.
func waitedAnd(more func(*desk, *Run) error) func(*testing.T, *desk, *Run) any {
	return func(t *testing.T, d *desk, r *Run) any {
		t.Helper()
		err := r.Finish(Waiting, "")
		before := r.Record
		d.now = d.now.Add(time.Minute)
		if err = errors.Join(err, more(d, r)); err != nil {
			t.Fatal(err)
		}
		return before
	}
}

func continued(d *desk, r *Run) error {
	_, err := d.Reopen(context.Background(), r.ID, func(r *Record) { r.Continued++ })
	return err
}

func (d *desk) closed(id string) {
	d.t.Helper()
	if changed, err := d.Close(id); !changed || err != nil {
		d.t.Fatal(changed, err)
	}
}

// TestRestoreReads: the facts of the last day before the last one are read, however long ago that was, and the record of any other run
// stays as it is.
func TestRestoreReads(t *testing.T) {
	d := newDesk(t)
	list, err := d.Restore()
	if len(list) != 0 || err != nil {
		t.Fatalf("without facts: %v, %v", list, err)
	}
	finish := func(by time.Duration) *Run {
		t.Helper()
		d.now = d.now.Add(by)
		r := d.open(Record{})
		if err := r.Finish(OK, ""); err != nil {
			t.Fatal(err)
		}
		return r
	}
	old, first, last := finish(0), finish(48*time.Hour), finish(23*time.Hour)
	d.now = d.now.Add(72 * time.Hour)
	for _, r := range []*Run{old, first, last} {
		d.damage(r.ID, "empty")
	}
	if list, err = d.Restore(); err != nil || len(list) != 2 || list[0].ID != first.ID || list[1].ID != last.ID {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := d.Load(old.ID); !errors.As(err, new(*Damaged)) {
		t.Errorf("the old one: %v", err)
	}
}

// TestEndIsNotWritten: a run whose end cannot become a fact has none in its record either.
func TestEndIsNotWritten(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	if err := os.MkdirAll(d.Home.State("ledger", start.Format(time.DateOnly)+".jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(OK, ""); err == nil || d.load(r.ID).Done() {
		t.Errorf("%v, %+v", err, d.load(r.ID))
	}
}

// TestTextIsNoFact: the final text goes with the run, so no fact has it. A record that is made again takes it from the events.
func TestTextIsNoFact(t *testing.T) {
	d := newDesk(t)
	for _, text := range []string{"a final word", strings.Repeat("long ", 20_000)} {
		r := d.open(Record{})
		d.event(r, Event{Type: Result, Text: "before"})
		d.event(r, Event{Type: Result, Text: text})
		d.event(r, Event{Type: Result})
		if err := r.Finish(OK, ""); err != nil {
			t.Fatal(err)
		}
		facts, err := os.ReadFile(filepath.Join(d.Home.State("ledger"), start.Format(time.DateOnly)+".jsonl"))
		if err != nil || len(facts) == 0 || strings.Contains(string(facts), text[:10]) {
			t.Errorf("%v: %.1000s", err, facts)
		}
		for _, lost := range []bool{false, true} {
			want, err := text, os.Truncate(d.Home.Run(r.ID, "run.json"), 0)
			if lost {
				want, err = "", errors.Join(err, os.Remove(d.Home.Run(r.ID, "events.jsonl")))
			}
			if _, restoreErr := d.Restore(); err != nil || restoreErr != nil {
				t.Fatal(err, restoreErr)
			}
			if got := d.load(r.ID); got.Text != want || got.Outcome != OK {
				t.Errorf("%.40q, %s, want %.40q", got.Text, got.Outcome, want)
			}
		}
	}
}
