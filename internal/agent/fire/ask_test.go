package fire

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// asks gives a fixture a claim command that notes its arguments, then executes a line of shell. The result returns the notes.
func (d *fixture) asks(line string) (calls func() string) {
	d.t.Helper()
	dir := d.t.TempDir()
	d.Settings.Claim, d.Host.Name = filepath.Join(dir, "claim"), "laptop"
	script := "#!/bin/sh\necho \"$@\" >> " + dir + "/calls\n" + line + "\n"
	if err := os.WriteFile(d.Settings.Claim, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		d.t.Fatal(err)
	}
	return func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "calls"))
		return string(text)
	}
}

const call = "a 2026-03-02T09:00:00Z laptop\n"

func timer() Options { return Options{Trigger: Trigger{Scheduled: true}} }

// TestClaimOurs: the command is started once for a slot, and a fire that has none does not start it.
func TestClaimOurs(t *testing.T) {
	d := newFixture(t, runtest.Plays(nil), time.Minute)
	calls := d.asks("exit 0")
	first := d.fires(timer(), runlog.OK, true)
	d.claimed(first.ID, "ok")
	if c, err := d.Slots.Load("a", nine); !c.Won || err != nil {
		t.Errorf("the answer is not kept: %+v, %v", c, err)
	}
	d.silent()
	d.fires(Options{}, runlog.OK, false) // an extra run
	if got := calls(); got != call {
		t.Errorf("calls %q, want one: %q", got, call)
	}
}

// TestClaimTheirs: a timer's fire of another machine's slot does nothing. A fire by hand is an extra run.
func TestClaimTheirs(t *testing.T) {
	d := newFixture(t, runtest.Plays(nil), time.Minute)
	calls := d.asks("exit 75")
	d.silent()
	d.claimed("", slot.Elsewhere)
	d.silent()
	d.fires(Options{}, runlog.OK, false)
	d.claimed("", slot.Elsewhere)
	if got := calls(); got != call {
		t.Errorf("calls %q, want one: %q", got, call)
	}
	other := newFixture(t, runtest.Plays(nil), time.Minute)
	other.asks("exit 75")
	other.fires(Options{}, runlog.OK, false)
	other.claimed("", slot.Elsewhere)
}

// TestClaimFails: nothing runs, the owner is notified once, and the next fire asks again.
func TestClaimFails(t *testing.T) {
	d := newFixture(t, runtest.Plays(nil), time.Minute)
	calls := d.asks("echo no network >&2; [ -e works ] || exit 3")
	for range 2 {
		r, err := New(d.Runner).Fire(t.Context(), "a", timer())
		if r.ID != "" || !errors.Is(err, ErrUnasked) || !strings.HasSuffix(err.Error(), "/claim: exit status 3: no network") {
			t.Fatalf("%+v, %v", r, err)
		}
		if !New(d.Runner).Slots.Unanswered("a", nine) {
			t.Error("the next tick does not ask again")
		}
	}
	if got := d.records(); len(got) != 0 {
		t.Errorf("records: %+v", got)
	}
	open, err := d.Notify().OpenCauses()
	if err != nil || len(open) != 1 {
		t.Errorf("causes: %+v, %v", open, err)
	}
	if err := os.WriteFile(d.Home.Path("works"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := d.fires(timer(), runlog.OK, true)
	d.claimed(first.ID, "ok")
	if open, err = d.Notify().OpenCauses(); err != nil || len(open) != 0 {
		t.Errorf("causes when it works again: %+v, %v", open, err)
	}
	if got := calls(); got != call+call+call {
		t.Errorf("calls: %q", got)
	}
}

// TestClaimFailsToTheEnd: a slot for which the command fails for 15 minutes is missed, and the cause counts it.
func TestClaimFailsToTheEnd(t *testing.T) {
	d := newFixture(t, runtest.Plays(nil), time.Minute)
	d.asks("exit 1")
	if _, err := New(d.Runner).Fire(t.Context(), "a", timer()); !errors.Is(err, ErrUnasked) {
		t.Fatal(err)
	}
	d.now = nine.Add(slot.Grace + time.Minute)
	missed, held, err := New(d.Runner).Slots.Miss(t.Context(), "a", nine, "why")
	if !missed || !held || err != nil {
		t.Errorf("missed %v, held %v, %v", missed, held, err)
	}
	d.claimed("", slot.Missed)
	open, err := d.Notify().OpenCauses()
	for _, e := range open {
		if len(e.Jobs) != 1 || e.Jobs["a"].Missed != 1 {
			t.Errorf("%+v", e.Jobs)
		}
	}
	if len(open) != 1 || err != nil {
		t.Errorf("causes: %+v, %v", open, err)
	}
}

// TestClaimWonBeforeAKill: a fire that takes over the slot of one that was killed after the command had answered does not ask again.
func TestClaimWonBeforeAKill(t *testing.T) {
	d := newFixture(t, runtest.Plays(nil), time.Minute)
	calls := d.asks("exit 75")
	dead := slot.Claim{Job: "a", Slot: nine, Run: "20260302T090000.000Z-000000", PID: 1 << 30, PIDStart: 1}
	if err := errors.Join(d.Slots.Claim(dead), d.Slots.Win("a", nine, dead.Run)); err != nil {
		t.Fatal(err)
	}
	r := d.fires(timer(), runlog.OK, true)
	d.claimed(r.ID, "ok")
	if got := calls(); got != "" {
		t.Errorf("asked again: %q", got)
	}
}
