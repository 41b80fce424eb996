package fire

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestFireWithoutItsFiles: a fire that cannot hold its run or the job's lock is an error without a record, and leaves no other lock.
func TestFireWithoutItsFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path func(h *hooks) string
		slot string
	}{
		"runs":     {func(h *hooks) string { return h.Home.Runs() }, ""},
		"job lock": {func(h *hooks) string { return h.Home.JobLock("a") }, "failed"},
	} {
		h := newHooks(t, "ci")
		event := h.accept("ci")
		h.now = nine.Add(time.Minute)
		must(t, os.MkdirAll(h.Home.Locks(), 0o700))
		must(t, os.RemoveAll(c.path(h)))
		if name == "runs" {
			must(t, os.WriteFile(c.path(h), nil, 0o600))
		} else {
			must(t, instead(c.path(h)))
			must(t, instead(h.Home.JobLock("ci")))
		}
		if r, err := New(h.Runner).Fire(t.Context(), "a", timer()); err == nil || errors.Is(err, slot.ErrClaimed) || r.ID != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if c.slot == "" {
			h.unclaimed()
		} else {
			h.claimed("", c.slot)
		}
		if r, err := New(h.Runner).FireEntry(t.Context(), event, Options{}); err == nil || r.ID != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestAnswerIsNotKept: the answer of the claim command that cannot be written is an error, and nothing runs.
func TestAnswerIsNotKept(t *testing.T) {
	t.Parallel()
	for _, exit := range []string{"0", "75"} {
		d := newFixture(t, runtest.Plays(nil), time.Minute)
		d.asks("cd state/slots/a && rm 2026* && mkdir -p 20260302T090000Z/x; exit " + exit)
		d.warns()
		if r, err := New(d.Runner).Fire(t.Context(), "a", timer()); r.ID != "" || err == nil || errors.Is(err, slot.ErrClaimed) {
			t.Errorf("exit %s: %+v, %v", exit, r, err)
		}
	}
}

// TestOrphanThatCannotBeClosed: it is left to the next call, with a warning.
func TestOrphanThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.began(d.job("a"), nil)
	must(t, instead(d.Home.Run(r.ID, "lock")))
	warned := d.warns()
	Slots{d.Runner}.endOrphan(t.Context(), r.Record)
	if got, err := d.Runs.Load(r.ID); len(*warned) != 1 || got.Done() || err != nil || len(d.causes()) > 0 {
		t.Errorf("warned %q; %+v, %v", *warned, got, err)
	}
}

// TestPreviousRun: the job's last run is ended by the next fire if its process died. One that cannot be read counts as none.
func TestPreviousRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prep    func(d *fixture, r *runlog.Run)
		known   bool
		outcome runlog.Outcome
		causes  int
	}{
		"killed":   {func(*fixture, *runlog.Run) {}, true, runlog.Interrupted, 1},
		"reminder": {func(_ *fixture, r *runlog.Run) { must(t, r.Update(func(r *runlog.Record) { r.Kind = "reminder" })) }, true, runlog.Interrupted, 0},
		"ended":    {func(d *fixture, r *runlog.Run) { must(d.t, r.Finish(runlog.Failed, "")) }, true, runlog.Failed, 0},
		"asked": {func(d *fixture, r *runlog.Run) {
			must(d.t, r.Event(d.t.Context(), runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "?"}))
		}, true, runlog.Waiting, 0},
		"pruned":     {func(d *fixture, r *runlog.Run) { must(d.t, r.Remove()) }, false, "", 0},
		"unreadable": {func(d *fixture, r *runlog.Run) { must(d.t, instead(d.Home.Run(r.ID, "run.json"))) }, false, "", 0},
		"locked":     {func(d *fixture, r *runlog.Run) { must(d.t, instead(d.Home.Run(r.ID, "lock"))) }, false, "", 0},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		d.Host.Sealing.Temp = t.TempDir()
		r := d.began(d.job("a"), nil)
		c.prep(d, r)
		must(t, store.Replace(d.Home.JobLock("a"), []byte(r.ID+"\n")))
		guard, err := lock.TryGuard(d.Home.JobLock("a"))
		must(t, err)
		last := (&fire{r: d.Runner, guard: guard}).closePrevious(t.Context())
		if guard.Release(); (last.ID == r.ID) != c.known || last.Outcome != c.outcome || len(d.causes()) != c.causes {
			t.Errorf("%s: %+v, causes %q", name, last, d.causes())
		}
	}
}

// TestToolsThatNeedTheSeal: a pattern that is in force only in a sealed run is refused while runs are not sealed.
func TestToolsThatNeedTheSeal(t *testing.T) {
	t.Parallel()
	const text = "Bash(python3 *)"
	p, err := policy.Parse(text)
	must(t, err)
	if p.Unsealed() == "" {
		t.Fatal("it is in force without a seal")
	}
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	for _, c := range []struct {
		tools   []string
		refused bool
	}{{[]string{"WebSearch"}, false}, {[]string{"WebSearch", text}, true}, {nil, false}, {[]string{"Bash("}, false}, {[]string{"Bash(", text}, true}} {
		if err := (Rules{d.Runner}).CheckTools(job.Job{AllowedTools: c.tools}); errors.Is(err, run.ErrRefused) != c.refused {
			t.Errorf("%q: %v", c.tools, err)
		}
	}
	d.Host.Sealing.Check = func() (int, error) { return 0, errLater }
	if err := (Rules{d.Runner}).CheckTools(job.Job{AllowedTools: []string{text}, Seal: job.SealOn}); err != nil {
		t.Errorf("every start reports that it cannot be sealed: %v", err)
	}
	d.Host.Sealing.Mode, d.Host.Sealing.Check = "auto", func() (int, error) { return 4, nil }
	if err := (Rules{d.Runner}).CheckTools(job.Job{AllowedTools: []string{text}}); err != nil {
		t.Errorf("it is sealed: %v", err)
	}
}
