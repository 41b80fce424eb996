package fire

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestKilledBeforeTheSlotIsSettled: the record has its outcome, the slot has none yet. The next tick writes it; a claim that another
// run has stays as it is.
func TestKilledBeforeTheSlotIsSettled(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
	for _, owner := range []string{r.ID, "20260302T090001.000Z-abcdef"} {
		if err := d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: owner, PID: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		Slots{d.Runner}.EndOrphans(t.Context(), time.Time{}, time.Time{})
		d.claimed(owner, map[bool]string{true: "ok"}[owner == r.ID])
	}
}

// shrinks is an engine whose session is compacted in its turn, after meanwhile.
type shrinks struct {
	runtest.Turn
	meanwhile func()
}

func (e shrinks) Run(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	if err := sink(runlog.Event{Type: runlog.Session, Session: "long"}); err != nil {
		return engine.Result{}, err
	}
	e.meanwhile()
	return engine.Result{Session: "short"}, sink(runlog.Event{Type: runlog.Compacted, Session: "short", Parent: "long"})
}

// TestCompactionKeepsItsParent: a summary becomes the session only once the history says what it is a summary of.
func TestCompactionKeepsItsParent(t *testing.T) {
	t.Parallel()
	var d *fixture
	d = newFixture(t, shrinks{meanwhile: func() {
		if err := errors.Join(os.Remove(d.Home.SessionHistory()), os.Mkdir(d.Home.SessionHistory(), 0o700)); err != nil {
			t.Error(err)
		}
	}}, time.Minute)
	text := "---\nid: a\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\n---\nGo.\n"
	if err := store.Replace(d.Home.Path("routines", "a.md"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	d.fires(Options{}, runlog.Failed, true)
	if id, err := d.Sessions.Routine("a"); err != nil || id != "long" {
		t.Errorf("the session is %q, %v; want the one that the history knows", id, err)
	}
}

// concludes opens the record of a reminder whose run came to an outcome, and whose process was killed before it finished the record.
func concludes(t *testing.T, f *run.Runner, j job.Job, outcome runlog.Outcome) string {
	t.Helper()
	id, err := runlog.NewID(time.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Runs.Open(runlog.Record{
		ID: id, Subject: runlog.Subject{Kind: string(job.Reminder), Job: j.ID, Name: j.ID, Path: j.Path}, Started: time.Now(), Process: runlog.Process{ID: process.ID{PID: 1 << 30}},
		Scheduled: &j.RunAt, Outcome: outcome,
	})
	if err == nil {
		err = store.Replace(f.Home.JobLock(j.ID), []byte(id+"\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestKilledAfterPutAway: the record of a reminder that was put away says how its run ended.
func TestKilledAfterPutAway(t *testing.T) {
	t.Parallel()
	for _, outcome := range []runlog.Outcome{runlog.OK, runlog.Failed, runlog.Unreported} {
		f := runtest.New(t, runtest.Plays(nil))
		j := reminderFile(t, f, "isolated: true")
		id := concludes(t, f, j, outcome)
		if err := os.Remove(j.Path); err != nil {
			t.Fatal(err)
		}
		Slots{f}.EndOrphans(t.Context(), time.Time{}, time.Time{})
		if r, err := f.Runs.Load(id); err != nil || r.Outcome != outcome || !r.Done() {
			t.Errorf("%q, %v; want %q", r.Outcome, err, outcome)
		}
	}
}

// TestKilledBeforePutAway: a reminder whose run went well is put away by the next fire, which does not run it again. One whose run
// failed is tried again, and so is one whose last run was that of another reminder with its id.
func TestKilledBeforePutAway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		outcome runlog.Outcome
		earlier time.Duration // that the last run was for
		begun   int
	}{
		"well":    {runlog.OK, 0, 0},
		"failed":  {runlog.Failed, 0, 1},
		"another": {runlog.OK, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			begun := 0
			f := runtest.New(t, runtest.Turn(func(engine.Request) error { begun++; return nil }))
			j := reminderFile(t, f, "isolated: true")
			claimed, err := f.Jobs.Claim(j)
			if err != nil {
				t.Fatal(err)
			}
			claimed.RunAt = j.RunAt.Add(-tc.earlier)
			concludes(t, f, claimed, tc.outcome)
			if _, err := New(f).Fire(t.Context(), j.ID, Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(claimed.Path); begun != tc.begun || !os.IsNotExist(err) {
				t.Errorf("begun %d times, want %d; its file: %v", begun, tc.begun, err)
			}
		})
	}
}

// TestSilentIsReported: a run that ends itself because the data directory does not answer is reported, as one whose process died.
func TestSilentIsReported(t *testing.T) {
	t.Parallel()
	f := runtest.New(t, runtest.Turn(func(engine.Request) error { return run.ErrSilent }))
	if err := store.Replace(f.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"@yearly\"\nbackground: true\nisolated: true\n---\nGo.\n")); err != nil {
		t.Fatal(err)
	}
	r, err := New(f).Fire(t.Context(), "a", Options{})
	if r.Outcome != runlog.Interrupted || !errors.Is(err, run.ErrSilent) {
		t.Errorf("%q, %v", r.Outcome, err)
	}
	pending, err := f.Updates.Peek(t.Context())
	if err != nil || len(pending) != 1 || !strings.Contains(pending[0].Message, "a was cut off before it ended") {
		t.Errorf("%+v, %v", pending, err)
	}
}
