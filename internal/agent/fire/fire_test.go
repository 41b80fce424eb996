package fire

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestAfterAPowerFailure: a slot whose claim was lost is not run again, and a run whose record was lost is known.
func TestAfterAPowerFailure(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.fires(timer(), runlog.OK, true)
	forget := func(paths ...string) {
		for _, path := range append(paths, d.Home.State("boots")) {
			must(t, os.RemoveAll(path))
		}
	}
	forget(d.Home.Slots())
	d.silent()
	forget(d.Home.Run(r.ID, "run.json"))
	if _, err := (Answers{d.Runner}).Give(t.Context(), r.ID, "x"); !errors.As(err, new(*question.Closed)) {
		t.Error(err)
	}
}

// TestReleases: after each kind of fire the outbox is sent and the locks are free.
func TestReleases(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	event := h.accept("ci")
	h.queues()
	h.answers(event, runlog.OK, 1)
	h.sentAll()
	h.now = nine.Add(time.Minute)
	h.Outbox.Command = nil
	must(t, os.RemoveAll(h.Home.Outbox()))
	h.queues()
	r := h.fires(timer(), runlog.OK, true)
	h.sentAll()
	for _, path := range []string{h.Home.JobLock("a"), h.Home.JobLock("ci"), h.Home.RunLock(r.ID)} {
		if !lock.Free(path) {
			t.Errorf("%s is held", path)
		}
	}
	if _, err := os.Stat(h.Home.RunLock(r.ID)); err == nil {
		t.Error("the run's lock file is left")
	}
	h.silent() // a fire without a run leaves no directory of one
	if runs, _ := filepath.Glob(filepath.Join(filepath.Dir(h.Home.Run(r.ID)), "*")); len(runs) != 2 {
		t.Errorf("runs %q", runs)
	}
}

// TestMonitorOfAFire: it is called after a run that ended well, and after no other.
func TestMonitorOfAFire(t *testing.T) {
	t.Parallel()
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer s.Close()
	fails := false
	d := newFixture(t, runtest.Turn(func(engine.Request) error {
		if fails {
			return errLater
		}
		return nil
	}), time.Minute, "heartbeat: "+s.URL)
	d.approve()
	d.fires(Options{}, runlog.OK, true)
	fails = true
	d.fires(Options{}, runlog.Failed, false)
	if owed, err := d.Heartbeats.List(); calls != 1 || len(owed) != 0 || err != nil {
		t.Errorf("%d calls, owed %+v, %v", calls, owed, err)
	}
}

// TestEntryOfAnotherMachine: an event of a webhook that this machine does not run waits.
func TestEntryOfAnotherMachine(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	h.hook("ci", "host: server")
	event := h.accept("ci")
	h.Host.Name = "laptop"
	h.starts()
	h.stays(event, slot.ErrNone)
}

// TestWaits: a fire that waits for the job's lock runs when it is free, and is skipped when its time is over.
func TestWaits(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour)
	guard, err := lock.TryGuard(d.Home.JobLock("a"))
	must(t, err)
	d.fires(Options{Wait: time.Nanosecond}, runlog.Skipped, false)
	guard.Release()
	d.fires(Options{Wait: time.Minute}, runlog.OK, false)
	if !lock.Free(d.Home.JobLock("a")) {
		t.Error("the lock is left")
	}
}

// TestSkippedSince: the reason of a skipped fire says since when the job has been running, if that is known.
func TestSkippedSince(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour)
		r := d.began(d.job("a"), nil)
		if ended {
			must(t, r.Finish(runlog.OK, ""))
		}
		guard, err := lock.TryGuard(d.Home.JobLock("a"))
		must(t, err)
		must(t, guard.Note(r.ID+"\n"))
		got := d.fires(Options{}, runlog.Skipped, false)
		if want := map[bool]string{false: "already running since 2026-03-02 10:00:00", true: "already running since a moment ago"}[ended]; got.Error != want {
			t.Errorf("%q, want %q", got.Error, want)
		}
		guard.Release()
	}
}

// TestPreviewOfAFire: it says why the job would be refused, and where it runs before that.
func TestPreviewOfAFire(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"": "", "host: server": "host: server runs it, and this machine is laptop: run `ollim fire a` there",
		"enabled: false": "enabled: false in its file", "host: server\nenabled: false": "host: server runs it, and this machine is laptop: run `ollim fire a` there",
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour, lines)
		d.Host.Name = "laptop"
		if plan, err := New(d.Runner).Preview(t.Context(), "a", Options{}); err != nil || plan.Refused != want {
			t.Errorf("%q: %q, %v", lines, plan.Refused, err)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), time.Hour)
	if _, err := New(d.Runner).Preview(t.Context(), "none", Options{}); err == nil {
		t.Error("there is no such job")
	}
}
