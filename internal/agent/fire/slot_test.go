package fire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/testkit"
)

// nine is a slot of the routine a.
var nine = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// fixture is a runner with a clock, and what it fired.
type fixture struct {
	*run.Runner
	t   *testing.T
	now time.Time
}

// newFixture has the routine a, due at nine each day, and the time so long after nine. more is further lines of its frontmatter.
func newFixture(t *testing.T, e engine.Engine, after time.Duration, more ...string) *fixture {
	t.Helper()
	d := &fixture{Runner: runtest.New(t, e), t: t, now: nine.Add(after)}
	disk := store.Disk{Now: func() time.Time { return d.now }, Warn: func(message string) { t.Log(message) }}
	d.Disk, d.Runs.Disk, d.Slots.Disk, d.Spend.Disk, d.Questions.Disk = disk, disk, disk, disk, disk
	d.write(more...)
	return d
}

func (d *fixture) write(more ...string) {
	d.t.Helper()
	text := "---\nid: a\ncron: \"0 9 * * *\"\nbackground: true\nisolated: true\n" + strings.Join(append(more, ""), "\n") + "---\nGo.\n"
	if err := store.Replace(d.Home.Path("routines", "a.md"), []byte(text)); err != nil {
		d.t.Fatal(err)
	}
}

// fires wants a fire to end so: with an outcome, and as the answer to nine or to nothing.
func (d *fixture) fires(o Options, outcome runlog.Outcome, answers bool) runlog.Record {
	d.t.Helper()
	r, _ := New(d.Runner).Fire(d.t.Context(), "a", o)
	if r.Outcome != outcome {
		d.t.Fatalf("%s: %s, want %s", r.Outcome, r.Error, outcome)
	}
	if (r.Scheduled != nil) != answers || answers && !r.Scheduled.Equal(nine) {
		d.t.Errorf("it answers %v", r.Scheduled)
	}
	return r
}

func (d *fixture) records() []runlog.Record {
	d.t.Helper()
	var list []runlog.Record
	for r, err := range d.Runs.Since(time.Time{}) {
		if err != nil {
			d.t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// silent wants a timer's fire to find its slot answered, and to leave no record.
func (d *fixture) silent() {
	d.t.Helper()
	before := len(d.records())
	if r, err := New(d.Runner).Fire(d.t.Context(), "a", Options{Trigger: Trigger{Scheduled: true}}); !errors.Is(err, slot.ErrClaimed) || r.ID != "" {
		d.t.Errorf("%+v, %v: want %v", r, err, slot.ErrClaimed)
	}
	if after := len(d.records()); after != before {
		d.t.Errorf("%d records more", after-before)
	}
}

// claimed wants the claim of nine to be of that run, "" for any, with that outcome.
func (d *fixture) claimed(id string, outcome string) {
	d.t.Helper()
	c, err := d.Slots.Load("a", nine)
	if err != nil || id != "" && c.Run != id || c.Outcome != outcome {
		d.t.Errorf("%+v, %v: want run %q, outcome %q", c, err, id, outcome)
	}
}

func (d *fixture) unclaimed() {
	d.t.Helper()
	if c, err := d.Slots.Load("a", nine); !errors.Is(err, fs.ErrNotExist) {
		d.t.Errorf("%+v, %v", c, err)
	}
}

func nothing(engine.Request) error { return nil }

func TestBareFireClaims(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second, 15 * time.Minute} {
		d := newFixture(t, runtest.Turn(nothing), after)
		r := d.fires(Options{}, runlog.OK, true)
		d.claimed(r.ID, "ok")
		d.silent()
		d.fires(Options{}, runlog.OK, false) // one more
		d.claimed(r.ID, "ok")
	}
}

func TestScheduledFireClaims(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
	d.claimed(r.ID, "ok")
	d.silent()
}

func TestFireOutsideASlot(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*fixture{
		"before":       newFixture(t, runtest.Turn(nothing), -time.Second),
		"too late":     newFixture(t, runtest.Turn(nothing), 15*time.Minute+time.Second),
		"never":        newFixture(t, runtest.Turn(nothing), time.Minute),
		"another time": newFixture(t, runtest.Turn(nothing), time.Minute),
	} {
		o := Options{}
		switch name {
		case "never":
			if err := store.Replace(d.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: 0 0 31 2 *\nbackground: true\n---\nGo.\n")); err != nil {
				t.Fatal(err)
			}
		case "another time":
			o.Moved, o.Engine = true, "script:x"
		}
		d.fires(o, runlog.OK, false)
		d.unclaimed()
	}
}

// TestOutcomesOfSlots: however a run ends, its claim says so.
func TestOutcomesOfSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		outcome runlog.Outcome
		engine  runtest.Turn
		more    string
		before  func(*fixture)
		options Options
	}{
		{outcome: runlog.Failed, engine: func(engine.Request) error { return errors.New("dead") }},
		{outcome: runlog.Timeout, engine: func(engine.Request) error { return run.ErrTimeout }},
		{outcome: runlog.Interrupted, engine: func(engine.Request) error { return context.Canceled }},
		{outcome: runlog.Refused, engine: nothing, more: "allowed-tools: [WebFetch]"},
		{outcome: runlog.Unreported, engine: nothing, more: "update-main-session: always"},
		{outcome: runlog.Gated, engine: nothing, more: "gate: no", before: func(d *fixture) {
			if err := os.MkdirAll(d.Home.Path("gates"), 0o700); err != nil {
				d.t.Fatal(err)
			}
			if err := testkit.WriteFile(d.Home.Gate("no"), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
				d.t.Fatal(err)
			}
			d.approve()
		}},
		{outcome: runlog.Paused, engine: nothing, before: func(d *fixture) {
			if err := d.Spend.Pause(d.t.Context(), time.Time{}); err != nil {
				d.t.Fatal(err)
			}
		}},
	} {
		t.Run(string(c.outcome), func(t *testing.T) {
			var more []string
			if c.more != "" {
				more = append(more, c.more)
			}
			d := newFixture(t, c.engine, time.Minute, more...)
			if c.before != nil {
				c.before(d)
			}
			r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, c.outcome, true)
			d.claimed(r.ID, string(c.outcome))
			d.silent()
		})
	}
}

func (d *fixture) approve() {
	d.t.Helper()
	files, err := d.Jobs.Load()
	if err != nil {
		d.t.Fatal(err)
	}
	subject, _, err := d.Approvals.Of(files.Jobs[0])
	if err == nil {
		err = d.Approvals.Approve(d.t.Context(), subject, approval.Owner)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// TestSlotOfABusyJob: the slot of a job whose last run still goes on is skipped.
func TestSlotOfABusyJob(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	guard, err := lock.TryGuard(d.Home.JobLock("a"))
	if err != nil {
		t.Fatal(err)
	}
	r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.Skipped, true)
	d.claimed(r.ID, "skipped")
	d.silent()
	d.fires(Options{}, runlog.Skipped, false)
	d.claimed(r.ID, "skipped")
	guard.Release()
	d.silent()
}

// TestNoRecordIsAFailure: a fire that comes to no record has failed its slot.
func TestNoRecordIsAFailure(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	d.Settings.Engine = ""
	if _, err := New(d.Runner).Fire(t.Context(), "a", Options{}); !errors.Is(err, run.ErrNoEngine) {
		t.Fatal(err)
	}
	d.claimed("", "failed")
}

func TestSwitchedOffHasNoSlot(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute, "enabled: false")
	d.fires(Options{}, runlog.Paused, false)
	if r, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Scheduled: true}}); !errors.Is(err, slot.ErrNone) || r.ID != "" { // an entry that is stale
		t.Errorf("%+v, %v", r, err)
	}
	d.unclaimed()
}

// TestLineInACrontab: a bare line of the owner's yields to a timer in the time of the slot, and is one more later.
func TestLineInACrontab(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Second)
	r := d.fires(Options{Trigger: Trigger{Cron: inCrontab}}, runlog.OK, true)
	if again, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Cron: inCrontab}}); !errors.Is(err, slot.ErrClaimed) || again.ID != "" {
		t.Errorf("%+v, %v", again, err)
	}
	d.now = nine.Add(5 * time.Minute)
	d.fires(Options{Trigger: Trigger{Cron: inCrontab}}, runlog.OK, false)
	d.claimed(r.ID, "ok")
	d.now = nine.Add(-time.Hour)
	d.fires(Options{Trigger: Trigger{Cron: inCrontab}}, runlog.OK, false) // its own time, whatever the file says
}

// TestScheduledById: a timer means the id, whatever other files are called.
func TestScheduledById(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Second)
	text := "---\nid: b\ncron: \"0 9 * * *\"\n---\nGo.\n"
	if err := os.Rename(d.Home.Path("routines", "a.md"), d.Home.Path("routines", "b.md")); err != nil {
		t.Fatal(err)
	}
	if err := store.Replace(d.Home.Path("routines", "a.md"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := New(d.Runner).Fire(t.Context(), "a", Options{}); err == nil {
		t.Error("a could be either")
	}
	if r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true); r.Job != "a" {
		t.Errorf("%+v", r)
	}
}

// TestLateSlot: the prompt of a fire for an older slot says so.
func TestLateSlot(t *testing.T) {
	t.Parallel()
	var prompt string
	d := newFixture(t, runtest.Turn(func(r engine.Request) error { prompt = r.Input.Prompt; return nil }), 3*time.Hour)
	r := d.fires(Options{Trigger: Trigger{Scheduled: true, Slot: nine}}, runlog.OK, true)
	d.claimed(r.ID, "ok")
	if !strings.Contains(prompt, "[late: was scheduled for 9:00 AM") {
		t.Errorf("%q", prompt)
	}
	if _, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Scheduled: true, Slot: nine}}); !errors.Is(err, slot.ErrClaimed) {
		t.Error(err)
	}
	d.fires(Options{}, runlog.OK, false)
	if strings.Contains(prompt, "[late") {
		t.Errorf("%q", prompt)
	}
}

// TestNoSuchSlot: a time that is no slot, or is in the future, is not claimed.
func TestNoSuchSlot(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{nine.AddDate(0, 0, 1), nine.Add(time.Minute), nine.AddDate(70, 0, 0)} {
		d := newFixture(t, runtest.Turn(nothing), 3*time.Hour)
		if r, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Scheduled: true, Slot: at}}); !errors.Is(err, slot.ErrNone) || r.ID != "" {
			t.Errorf("%s: %+v, %v", at, r, err)
		}
	}
}

// TestSlotOfAFormerExpression: what was missed before the file changed may still be run.
func TestSlotOfAFormerExpression(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 3*time.Hour)
	d.now = nine.Add(-time.Hour)
	if _, err := d.Slots.Note(t.Context(), []slot.Schedule{{Job: "a", Name: "a", Cron: "30 9 * * *", Zone: "UTC", Enabled: true}}, nil); err != nil {
		t.Fatal(err)
	}
	d.now = nine.Add(3 * time.Hour)
	if r, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Scheduled: true, Slot: nine.Add(30 * time.Minute)}}); err != nil || r.Outcome != runlog.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// diesBefore leaves a claim of a process that was killed before it had a record of its run.
func (d *fixture) diesBefore(at time.Time) string {
	d.t.Helper()
	id, err := runlog.NewID(d.now, rand.Reader)
	if err == nil {
		err = d.Slots.Claim(slot.Claim{Job: "a", Slot: at, Run: id, PID: 1 << 30})
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return id
}

func TestVoidClaimIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{}, {Trigger: Trigger{Scheduled: true}}} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		d.diesBefore(nine)
		r := d.fires(o, runlog.OK, true)
		d.claimed(r.ID, "ok")
		c, err := d.Slots.Load("a", nine)
		if err != nil || c.PID != d.Host.Process().PID || !c.Claimed.Equal(d.now) {
			t.Errorf("%+v, %v", c, err)
		}
		d.silent()
	}
}

// TestEmptyClaimIsTakenOver: what a power cut may leave of a claim.
func TestEmptyClaimIsTakenOver(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	if err := store.Replace(d.Home.State("slots", "a", "20260302T090000Z"), nil); err != nil {
		t.Fatal(err)
	}
	r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
	d.claimed(r.ID, "ok")
}

// TestClockSetBack: what was given up when the clock ran ahead may still be answered, what was run may not.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{slot.Missed, "paused", "refused"} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour)
		if err := d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Outcome: outcome}); err != nil {
			t.Fatal(err)
		}
		d.now = nine.Add(time.Minute)
		r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
		d.claimed(r.ID, "ok")
		d.now = nine
		d.silent()
	}
}

// TestVoidClaimOfABusyJob: while the job runs, no fire takes the claim over.
func TestVoidClaimOfABusyJob(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	dead := d.diesBefore(nine)
	guard, err := lock.TryGuard(d.Home.JobLock("a"))
	if err != nil {
		t.Fatal(err)
	}
	d.silent()
	d.claimed(dead, "")
	guard.Release()
	d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
}

// TestOneMoreGivesWay: a fire that finds its slot claimed does not take the job's lock before the run that has it.
func TestOneMoreGivesWay(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	id, err := runlog.NewID(d.now, rand.Reader)
	if err == nil {
		err = d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Run: id, PID: d.Host.Process().PID, PIDStart: d.Host.Process().Start})
	}
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	d.Host.Sleep = func(context.Context, time.Duration) error {
		if waits++; waits < 3 {
			return nil
		}
		guard, err := lock.TryGuard(d.Home.JobLock("a"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(guard.Release)
		_, err = d.Runs.Open(runlog.Record{ID: id, Subject: runlog.Subject{Kind: "routine", Job: "a"}, Started: d.now})
		return err
	}
	d.fires(Options{}, runlog.Skipped, false)
	d.claimed(id, "")
	if waits != 3 {
		t.Errorf("it waited %d times", waits)
	}
}

// TestClaimOfALivingProcess: one that has claimed and is about to begin keeps its slot, and is not kept from the job's lock.
func TestClaimOfALivingProcess(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	id, err := runlog.NewID(d.now, rand.Reader)
	if err == nil {
		err = d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Run: id, PID: d.Host.Process().PID, PIDStart: d.Host.Process().Start})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.silent()
	if _, err := os.Stat(d.Home.JobLock("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the job's lock was taken: %v", err)
	}
	d.fires(Options{}, runlog.OK, false)
	d.claimed(id, "")
}

// TestLostClaim: a fire whose claim was taken over while it was on its way to the lock is done.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	f, err := New(d.Runner).find(t.Context(), "a", Options{Trigger: Trigger{Scheduled: true}})
	if err == nil {
		err = f.claim.take(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	winner, err := runlog.NewID(d.now, rand.Reader)
	if err == nil {
		err = d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: winner, Outcome: "ok"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.respond(t.Context()); !errors.Is(err, slot.ErrClaimed) {
		t.Error(err)
	}
	f.claim.settle("")
	d.claimed(winner, "ok")
}

// TestKilledAfterTheRecord: such a claim is not void. A tick and the next fire both end the record as interrupted.
func TestKilledAfterTheRecord(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(*fixture){
		"tick": func(d *fixture) { Slots{d.Runner}.EndOrphans(d.t.Context(), time.Time{}, time.Time{}) },
		"fire": func(d *fixture) { d.fires(Options{}, runlog.OK, false) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, runtest.Turn(nothing), time.Minute)
			id := d.diesBefore(nine)
			at := nine
			if _, err := d.Runs.Open(runlog.Record{ID: id, Subject: runlog.Subject{Kind: "routine", Job: "a", Name: "a"}, Started: d.now, Process: runlog.Process{ID: process.ID{PID: 1 << 30}}, Scheduled: &at}); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(d.Home.Locks(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(d.Home.JobLock("a"), []byte(id+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			d.silent()
			if (Slots{d.Runner}).Unanswered("a", nine) {
				t.Error("taken for unanswered")
			}
			d.Host.Sealing.Temp = t.TempDir()
			temporary := filepath.Join(d.Host.Sealing.Temp, "ollim-"+id+"-77")
			if err := os.MkdirAll(filepath.Join(temporary, "cache"), 0o700); err != nil {
				t.Fatal(err)
			}
			ends(d)
			if _, err := os.Lstat(temporary); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the temporary files of the run are left: %v", err)
			}
			d.claimed(id, "interrupted")
			d.silent()
		})
	}
}

// TestManyAtOnce: of the fires of timers and of bare lines in crontabs exactly one answers the slot, however they fall; those
// that lose leave nothing.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		var mu sync.Mutex
		turns := 0
		d := newFixture(t, runtest.Turn(func(engine.Request) error {
			mu.Lock()
			turns++
			mu.Unlock()
			return nil
		}), time.Minute)
		if round%2 == 1 {
			d.diesBefore(nine)
		}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if _, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Scheduled: i%3 > 0, Cron: func() bool { return i%3 == 0 }}}); err != nil && !errors.Is(err, slot.ErrClaimed) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if records := d.records(); turns != 1 || len(records) != 1 {
			t.Fatalf("round %d: %d turns, records %+v", round, turns, outcomes(records))
		}
		d.claimed("", "ok")
	}
}

// TestGivesWay: a fire by hand leaves the job's lock to the run that has claimed the slot, however slow that is.
func TestGivesWay(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Second)
	me := d.Host.Process()
	if err := d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Run: "slow", PID: me.PID, PIDStart: me.Start}); err != nil {
		t.Fatal(err)
	}
	naps := 0
	d.Host.Sleep = func(context.Context, time.Duration) error {
		if naps++; naps == 3000 { // of 10 ms: the other run goes on
			guard, err := lock.TryGuard(d.Home.JobLock("a"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(guard.Release)
		}
		return nil
	}
	d.fires(Options{}, runlog.Skipped, false)
}

func outcomes(records []runlog.Record) (list []string) {
	for _, r := range records {
		list = append(list, fmt.Sprintf("%s %s", r.Outcome, r.Error))
	}
	return list
}

// TestMiss: only a slot without a claim is recorded as missed.
func TestMiss(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 20*time.Minute)
	miss := func(want bool, outcome string) {
		t.Helper()
		if missed, _, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); err != nil || missed != want {
			t.Errorf("missed %v, %v", missed, err)
		}
		d.claimed("", outcome)
	}
	miss(true, slot.Missed)
	miss(false, slot.Missed)
	if err := d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: "x", PID: d.Host.Process().PID, PIDStart: d.Host.Process().Start}); err != nil {
		t.Fatal(err)
	}
	miss(false, "") // it waits for the job
	if err := d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: "x", PID: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	guard, err := lock.TryGuard(d.Home.JobLock("a"))
	if err != nil {
		t.Fatal(err)
	}
	miss(false, "")
	guard.Release()
	miss(true, slot.Missed)
}

func inCrontab() bool { return true }
