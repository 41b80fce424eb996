package fire

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestBadFiles: a job file that cannot be used is reported once, on standard error only if it is not that of the fire, and again when it can.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	warned := d.warns()
	reports := func(warns int, causes ...string) {
		t.Helper()
		*warned = nil
		_, _ = New(d.Runner).Fire(t.Context(), "a", Options{})
		got := d.causes()
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], ":")
		}
		if !slices.Equal(got, causes) || len(*warned) != warns {
			t.Errorf("causes %q, warned %q", got, *warned)
		}
	}
	reports(0)
	must(t, store.Replace(d.Home.Path("routines", "b.md"), []byte("---\nnone: 1\nother: 2\n---\n")))
	reports(1, "file routines/b.md")
	reports(0, "file routines/b.md")
	must(t, os.Remove(d.Home.Path("routines", "b.md")))
	d.opens(notify.Job, "x")
	reports(0, "job x")
	d.write("none: 1")
	reports(0, "file routines/a.md", "job x")
	d.write()
	reports(0, "job x")
	files, err := d.Jobs.Load()
	must(t, err)
	Reports{d.Runner}.BadFiles(t.Context(), files.Faults)
	must(t, store.Replace(d.Home.Path("routines", "b.md"), []byte("---\nnone: 1\n---\n")))
	files, err = d.Jobs.Load()
	must(t, err)
	Reports{d.Runner}.BadFiles(t.Context(), files.Faults)
	must(t, Reports{d.Runner}.MissedByFile(t.Context(), files.Faults[0], "a", 3))
	if got := d.causes(); len(got) != 2 || !strings.HasSuffix(got[0], " a0 3") {
		t.Errorf("%q", got)
	}
}

// TestToolPolicyIsReported: that tool-policy.yaml waits is reported until it is approved.
func TestToolPolicyIsReported(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	warned := d.warns()
	must(t, store.Replace(d.Home.ToolPolicy(), []byte("background:\n  additional-allowed: [WebSearch]\n")))
	for range 2 {
		Reports{d.Runner}.beforeFire(t.Context(), nil, nil)
	}
	if got := d.causes(); len(got) != 1 || !strings.HasPrefix(got[0], "approval tool-policy.yaml") || len(*warned) != 1 {
		t.Errorf("%q, warned %q", got, *warned)
	}
	must(t, os.Remove(d.Home.ToolPolicy()))
	Reports{d.Runner}.beforeFire(t.Context(), nil, nil)
	if got := d.causes(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	*warned = nil
	must(t, os.MkdirAll(d.Home.Locks(), 0o700))
	must(t, instead(d.Home.Lock("ledger")))
	must(t, store.Replace(d.Home.ToolPolicy(), []byte("background:\n  additional-allowed: [WebSearch]\n")))
	if (Reports{d.Runner}).beforeFire(t.Context(), nil, nil); len(*warned) == 0 {
		t.Error("what cannot be noted is no warning")
	}
	must(t, store.Replace(d.Home.ToolPolicy(), []byte("none: 1\n")))
	if err := (Reports{d.Runner}).policy(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// TestMissedReports: the owner is told what was missed, and of which job.
func TestMissedReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		held    slot.Claim
		already bool
		missed  bool
		because bool
		cause   string
	}{
		{slot.Claim{}, false, true, false, ""},
		{slot.Claim{Held: "limit"}, false, true, true, "Daily did not run at 2026-03-02 09:00: for 15 minutes other runs had reserved the rest of the spending limit (limit) a0 1"},
		{slot.Claim{Held: "no network", Unasked: true}, false, true, true, "Daily did not run, because the claim command failed (no network). Each tick asks it again, for 15 minutes a0 1"},
		{slot.Claim{Run: "x", PID: 1 << 30}, false, true, false, ""},
		{slot.Claim{Outcome: "ok", Run: "x"}, true, false, false, ""},
	} {
		d := newFixture(t, runtest.Turn(nothing), 20*time.Minute, "description: Daily")
		if c.held.Job, c.held.Slot = "a", nine; c.held.Held+c.held.Run != "" {
			must(t, d.Slots.Rewrite(c.held))
		}
		missed, held, err := Slots{d.Runner}.Miss(t.Context(), "a", nine, "off")
		if missed != c.missed || held != c.because || err != nil {
			t.Errorf("%+v: missed %v, held %v, %v", c.held, missed, held, err)
		}
		kept, err := d.Slots.Load("a", nine)
		if want := map[bool]string{true: c.held.Held, false: "off"}[c.because]; err != nil || c.missed && (kept.Outcome != slot.Missed || kept.Held != want) {
			t.Errorf("%+v: %+v, %v", c.held, kept, err)
		}
		if got := d.causes(); (len(got) == 1) != c.because || c.because && !strings.HasSuffix(got[0], ": "+c.cause) {
			t.Errorf("%+v: %q", c.held, got)
		}
		if !lock.Free(d.Home.JobLock("a")) {
			t.Error("the job's lock is left")
		}
	}
	d := newFixture(t, runtest.Turn(nothing), 20*time.Minute)
	must(t, instead(d.Home.Slots()))
	must(t, os.RemoveAll(d.Home.Slots()))
	must(t, os.WriteFile(d.Home.Slots(), nil, 0o600))
	if missed, held, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); missed || held || err == nil {
		t.Errorf("missed %v, held %v, %v", missed, held, err)
	}
	if got := (Reports{d.Runner}).labelOf("none"); got != "none" {
		t.Errorf("%q", got)
	}
}

// TestMissedUntold: a slot is missed once its owner can be told why.
func TestMissedUntold(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 20*time.Minute, "description: Daily")
	must(t, d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Held: "limit"}))
	locked := d.Home.Lock("ledger")
	must(t, os.RemoveAll(locked))
	must(t, os.MkdirAll(locked, 0o700))
	if missed, held, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); missed || !held || err == nil {
		t.Errorf("missed %v, held %v, %v", missed, held, err)
	}
	must(t, os.Remove(locked))
	if missed, held, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); !missed || !held || err != nil {
		t.Errorf("then: missed %v, held %v, %v", missed, held, err)
	}
	if got := d.causes(); len(got) != 1 {
		t.Errorf("causes %q", got)
	}

	d = newFixture(t, runtest.Turn(nothing), 20*time.Minute, "description: Daily")
	d.Outbox.Command = []string{"true"}
	must(t, d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Held: "limit"}))
	must(t, os.WriteFile(d.Home.Outbox(), nil, 0o600)) // the message is kept, and cannot be sent
	for _, want := range []bool{true, false} {
		if missed, _, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); missed != want || err != nil {
			t.Errorf("without an outbox: missed %v, %v, want %v", missed, err, want)
		}
	}
	if got := d.causes(); len(got) != 1 || !strings.HasSuffix(got[0], " a0 1") {
		t.Errorf("without an outbox: causes %q", got)
	}
}

// TestSettleKilled: the claim of a run gets the outcome of its record, unless it has one, or another run has the slot.
func TestSettleKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claim slot.Claim
		want  string
	}{
		"no outcome":  {slot.Claim{Run: "own"}, "failed"},
		"waiting":     {slot.Claim{Run: "own", Outcome: "waiting"}, "failed"},
		"has one":     {slot.Claim{Run: "own", Outcome: "ok"}, "ok"},
		"another run": {slot.Claim{Run: "other"}, ""},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		at := nine
		r := d.began(d.job("a"), func(r *runlog.Record) { r.Scheduled = &at })
		must(t, r.Finish(runlog.Failed, ""))
		if c.claim.Job, c.claim.Slot = "a", nine; c.claim.Run == "own" {
			c.claim.Run = r.ID
		}
		must(t, d.Slots.Rewrite(c.claim))
		Slots{d.Runner}.settleKilled(r.Record)
		if got, err := d.Slots.Load("a", nine); err != nil || got.Outcome != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	warned, at := d.warns(), nine
	Slots{d.Runner}.settleKilled(runlog.Record{Subject: runlog.Subject{Kind: "routine", Job: "a"}, Scheduled: &at})
	Slots{d.Runner}.settleKilled(runlog.Record{Subject: runlog.Subject{Kind: "routine", Job: "a"}})
	Slots{d.Runner}.settleKilled(runlog.Record{Subject: runlog.Subject{Kind: "reminder", Job: "a"}, Scheduled: &at})
	if len(*warned) > 0 {
		t.Errorf("%q", *warned)
	}
	must(t, instead(d.Home.Path("state", "slots", "a", "20260302T090000Z")))
	Slots{d.Runner}.settleKilled(runlog.Record{Subject: runlog.Subject{Kind: "reminder", Job: "a"}, Scheduled: &at})
	if len(*warned) > 0 {
		t.Errorf("a reminder has no slot: %q", *warned)
	}
	if (Slots{d.Runner}).settleKilled(runlog.Record{Subject: runlog.Subject{Kind: "routine", Job: "a"}, Scheduled: &at}); len(*warned) != 1 {
		t.Errorf("its claim cannot be read: %q", *warned)
	}
}

// TestEndOrphansSpares: a run in progress is left alone, and so is an event that is started again; a dead run ends, and is reported.
func TestEndOrphansSpares(t *testing.T) {
	t.Parallel()
	ends := func(want bool, reported int, change func(h *hooks, r *runlog.Record), meanwhile func(h *hooks, r *runlog.Run)) {
		t.Helper()
		h := newHooks(t)
		h.now = nine.Add(time.Minute)
		r := h.began(h.job("a"), func(r *runlog.Record) {
			if r.Engine = "costly"; change != nil {
				change(h, r)
			}
		})
		if meanwhile != nil {
			meanwhile(h, r)
		}
		Slots{h.Runner}.EndOrphans(t.Context(), time.Time{}, time.Time{})
		got, err := h.Runs.Load(r.ID)
		if err != nil || got.Done() != want {
			t.Errorf("ended %v, %v", got.Done(), err)
		}
		if causes := h.causes(); len(causes) != reported {
			t.Errorf("causes %q", causes)
		}
	}
	ends(true, 1, nil, nil)
	ends(true, 0, func(h *hooks, r *runlog.Record) { r.Subject = subject(h.reminder("isolated: true")) }, nil)
	ends(true, 0, nil, func(h *hooks, r *runlog.Run) {
		must(h.t, r.Event(h.t.Context(), runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "?"}))
	})
	ends(false, 0, nil, func(h *hooks, r *runlog.Run) {
		held, err := h.Runs.Hold(r.ID)
		must(h.t, err)
		h.t.Cleanup(held.Leave)
	})
	ends(false, 0, func(h *hooks, r *runlog.Record) {
		e := h.entry()
		r.ID, r.Subject = e.Run, subject(h.job("ci"))
	}, nil)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.began(d.job("a"), nil)
	if (Slots{d.Runner}).EndOrphans(stopped, time.Time{}, time.Time{}); d.records()[0].Done() {
		t.Errorf("%s has ended", r.ID)
	}
}

// TestDue: the latest slot is due while it is recent, unanswered and this machine's.
func TestDue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		lines string
		claim bool
		due   bool
	}{
		"due": {time.Minute, "", false, true}, "at once": {0, "", false, true}, "old": {16 * time.Minute, "", false, false},
		"answered": {time.Minute, "", true, false}, "elsewhere": {time.Minute, "host: server", false, false},
	} {
		d := newFixture(t, runtest.Turn(nothing), -time.Hour, c.lines)
		d.Host.Name = "laptop"
		s, j := Slots{d.Runner}, d.job("a")
		history, err := d.Slots.Note(t.Context(), []slot.Schedule{s.ScheduleOf(j)}, nil)
		must(t, err)
		if d.now = nine.Add(c.after); c.claim {
			must(t, d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Outcome: "ok", Run: "x"}))
		}
		if at, due, err := s.Due(j, history["a"], d.now); err != nil || due != c.due || due && !at.Equal(nine) {
			t.Errorf("%s: %v, %v", name, at, due)
		}
	}
}
