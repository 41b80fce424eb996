package fire

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/testkit"
)

// TestAttended: a claim is attended while its process lives, or holds the lock of its run.
func TestAttended(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	s, me := Slots{d.Runner}, d.Host.Process()
	held, err := d.Runs.Hold("20260302T090000.000Z-000000")
	must(t, err)
	defer held.Leave()
	for c, want := range map[slot.Claim]bool{
		{}: false, {Run: "x", PID: 1 << 30}: false, {Run: "20260302T090000.000Z-000000", PID: 1 << 30}: true, {Run: "x", PID: me.PID, PIDStart: me.Start}: true,
	} {
		if got := s.attended(c); got != want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestMissedTooLate: a slot that is answered between the two looks at its claim is not recorded as missed.
func TestMissedTooLate(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour)
	must(t, d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Outcome: "paused"}))
	d.now = nine.Add(20 * time.Minute) // the clock was set back, so that the claim is void
	d.Disk.Now = func() time.Time {
		must(t, d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: "x", Outcome: "ok"}))
		return d.now
	}
	if missed, held, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); missed || held || err != nil {
		t.Errorf("missed %v, held %v, %v", missed, held, err)
	}
	d.claimed("x", "ok")
}

// TestGivesNoWay: a fire does not wait for a run that has an outcome, or whose claim cannot be read.
func TestGivesNoWay(t *testing.T) {
	t.Parallel()
	for _, readable := range []bool{true, false} {
		d := newFixture(t, runtest.Turn(nothing), time.Second)
		me := d.Host.Process()
		must(t, d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: "x", PID: me.PID, PIDStart: me.Start, Outcome: "failed"}))
		if !readable {
			must(t, instead(d.Home.State("slots", "a", "20260302T090000Z")))
		}
		d.Host.Sleep = func(context.Context, time.Duration) error {
			t.Error("it waits")
			return errLater
		}
		(&claim{r: d.Runner}).giveWay(t.Context(), "a", nine)
	}
}

// TestManyOrphans: each is looked at, also behind one that is spared; one that asked the owner waits, and its slot with it.
func TestManyOrphans(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	h.now = nine.Add(time.Minute)
	waits := h.entry()
	h.began(h.job("ci"), func(r *runlog.Record) { r.ID, r.Started = waits.Run, h.now })
	alive := h.began(h.job("a"), nil)
	held, err := h.Runs.Hold(alive.ID)
	must(t, err)
	defer held.Leave()
	taken := h.began(h.job("ci"), nil)
	at := nine
	asked := h.began(h.job("a"), func(r *runlog.Record) { r.Scheduled = &at })
	must(t, h.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine, Run: asked.ID, PID: 1 << 30}))
	must(t, asked.Event(t.Context(), runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "?"}))
	Slots{h.Runner}.EndOrphans(t.Context(), time.Time{}, time.Time{})
	for id, want := range map[string]runlog.Outcome{waits.Run: "", alive.ID: "", taken.ID: runlog.Interrupted, asked.ID: runlog.Waiting} {
		if r, err := h.Runs.Load(id); r.Outcome != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", id, r.Outcome, err, want)
		}
	}
	h.claimed(asked.ID, "waiting")
}

// TestReportsOfAnEnd: the owner is told why a run did not go well, of a reminder only what is not told when it is put away.
func TestReportsOfAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    job.Kind
		outcome runlog.Outcome
		fault   string
		cause   error
		want    string // "": nothing
	}{
		"ok":               {kind: job.Routine, outcome: runlog.OK},
		"failed":           {kind: job.Routine, outcome: runlog.Failed, want: "failed"},
		"timeout":          {kind: job.Webhook, outcome: runlog.Timeout, want: "did not finish in time"},
		"reminder":         {kind: job.Reminder, outcome: runlog.Failed},
		"reminder, no key": {kind: job.Reminder, outcome: runlog.Failed, fault: string(notify.Key), want: "a"},
		"interrupted":      {kind: job.Routine, outcome: runlog.Interrupted},
		"silent":           {kind: job.Routine, outcome: runlog.Interrupted, cause: run.ErrSilent, want: "was cut off before it ended"},
		"silent reminder":  {kind: job.Reminder, outcome: runlog.Interrupted, cause: run.ErrSilent},
		"refused":          {kind: job.Routine, outcome: runlog.Refused, cause: run.Refuse("no"), want: "a"},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		j := d.job("a")
		j.Kind = c.kind
		r := d.began(j, nil)
		r.Outcome, r.Fault = c.outcome, c.fault
		(&fire{r: d.Runner, job: j}).Report(t.Context(), r, c.cause)
		if got := d.causes(); (len(got) == 1) != (c.want != "") || c.want != "" && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestEngineOfAJob: only an agent that speaks ACP may lack what a job needs. That an engine is wrong is told at the job that names it.
func TestEngineOfAJob(t *testing.T) {
	t.Parallel()
	wrong := &config.Wrong{}
	for _, c := range []struct {
		settings, engine string
		plain            bool
		err              error
		key              string
		want             error
		lacks, unreached bool
	}{
		{settings: "costly"},
		{settings: "acp:x", lacks: true, unreached: true},
		{settings: "acp:x", plain: true, unreached: true},
		{settings: "costly", engine: "acp:x", lacks: true, unreached: true},
		{settings: "acp:x", engine: "costly"},
		{settings: "costly", engine: "acp:x", err: wrong, key: "engine", want: wrong},
		{settings: "acp:x", err: wrong},
		{settings: "costly", engine: "acp:x", err: errLater},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		d.Settings.Engine = c.settings
		d.Engines = func(string) (engine.Engine, error) { return promisesNothing{}, c.err }
		j := job.Job{Engine: c.engine, Plain: c.plain, Background: true, MaxCost: 1, Network: job.NetworkNone}
		key, err := Rules{d.Runner}.CheckEngine(j)
		if key != c.key || c.want != nil && !errors.Is(err, c.want) || c.want == nil && (err != nil) != c.lacks {
			t.Errorf("%+v: %q, %v", c, key, err)
		}
		if got := (Rules{d.Runner}).Unreached(j); (got == "acp:x") != c.unreached || !c.unreached && got != "" {
			t.Errorf("%+v: unreached %q", c, got)
		}
		if j.Network = ""; (Rules{d.Runner}).Unreached(j) != "" {
			t.Errorf("%+v: it reaches the network", c)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), time.Minute) // its engine promises all
	if got := (Rules{d.Runner}).Unreached(job.Job{Engine: "acp:x", Network: job.NetworkNone}); got != "" {
		t.Errorf("unreached %q", got)
	}
}

// promisesNothing is an engine without guarantees.
type promisesNothing struct{ runtest.Turn }

func (promisesNothing) Guarantees(string) engine.Guarantees { return engine.Guarantees{} }

// TestClaimThatCannotBeRead: a timer's fire that cannot read its claim leaves it to the next one.
func TestClaimThatCannotBeRead(t *testing.T) {
	t.Parallel()
	failed := 0
	for fault := range testkit.Faults(t, syscall.EIO) {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		var err error
		fault.In(d.Home.Slots(), func() { _, err = New(d.Runner).Fire(t.Context(), "a", timer()) })
		if c, _ := d.Slots.Load("a", nine); errors.Is(err, syscall.EIO) && c.Run != "" {
			if failed++; c.Outcome != "" {
				t.Errorf("%s fails: the claim has the outcome %q", fault.Call, c.Outcome)
			}
		}
	}
	if failed == 0 {
		t.Error("no claim could not be read")
	}
}
