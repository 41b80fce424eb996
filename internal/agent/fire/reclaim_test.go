package fire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// damages are what may happen to the file of a claim.
func damages() map[string]func(path string) error {
	return map[string]func(path string) error{
		"empty":          func(path string) error { return os.Truncate(path, 0) },
		"junk":           func(path string) error { return os.WriteFile(path, []byte("junk\n"), 0o600) },
		"torn":           func(path string) error { return os.Truncate(path, 20) },
		"removed":        os.Remove,
		"folder removed": func(path string) error { return os.RemoveAll(filepath.Dir(filepath.Dir(path))) },
	}
}

// hears collects the warnings about claims.
func (d *fixture) hears() *[]string {
	var said []string
	disk := store.Disk{Now: func() time.Time { return d.now }, Warn: func(message string) { said = append(said, message) }}
	d.Disk, d.Slots.Disk = disk, disk
	return &said
}

// warned wants one warning, that names the claim of nine.
func (d *fixture) warned(said []string, why string) {
	d.t.Helper()
	if len(said) != 1 || !strings.HasPrefix(said[0], d.Slots.Path("a", nine)+": ") || !strings.Contains(said[0], why) {
		d.t.Errorf("%q, want %q", said, why)
	}
}

const fromLedger = "made again from the ledger"

// TestClaimOfARunIsDamaged: a slot that has run does not run again, whatever happens to its claim.
func TestClaimOfARunIsDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range damages() {
		for _, extra := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := newFixture(t, runtest.Turn(nothing), time.Minute)
				said := d.hears()
				r := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
				if extra {
					d.fires(Options{}, runlog.OK, false)
				}
				must(t, damage(d.Slots.Path("a", nine)))
				d.silent()
				d.claimed(r.ID, "ok")
				d.warned(*said, fromLedger)
				d.silent()
				d.warned(*said, fromLedger)
				d.fires(Options{}, runlog.OK, false)
			})
		}
	}
}

// TestLateFireOfADamagedClaim: catching up does not run such a slot either.
func TestLateFireOfADamagedClaim(t *testing.T) {
	t.Parallel()
	for name, damage := range damages() {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		said := d.hears()
		r := d.fires(Options{}, runlog.OK, true)
		d.now = nine.Add(5 * time.Hour)
		must(t, damage(d.Slots.Path("a", nine)))
		late, err := New(d.Runner).Fire(t.Context(), "a", Options{Trigger: Trigger{Scheduled: true, Slot: nine}})
		if late.ID != "" || err == nil {
			t.Errorf("%s: %+v, %v", name, late, err)
		}
		d.claimed(r.ID, "ok")
		d.warned(*said, fromLedger)
	}
}

// TestDamagedClaimWithoutARun: the ledger has no run, so a fire runs the slot, and a tick records it as missed when it is late.
func TestDamagedClaimWithoutARun(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "junk\n"} {
		for _, late := range []bool{false, true} {
			d := newFixture(t, runtest.Turn(nothing), time.Minute)
			said := d.hears()
			path := d.Slots.Path("a", nine)
			must(t, d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Outcome: slot.Missed}))
			must(t, os.WriteFile(path, []byte(text), 0o600))
			if !(Slots{d.Runner}).Unanswered("a", nine) {
				t.Error("a tick does not start it")
			}
			if late {
				missed, held, err := Slots{d.Runner}.Miss(t.Context(), "a", nine, "off")
				if !missed || held || err != nil {
					t.Error(missed, held, err)
				}
			} else {
				d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
			}
			d.warned(*said, "not valid")
		}
	}
}

// TestDamagedClaimIsNotMissed: a slot that has run is not recorded as missed.
func TestDamagedClaimIsNotMissed(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	said := d.hears()
	r := d.fires(Options{}, runlog.OK, true)
	must(t, os.Truncate(d.Slots.Path("a", nine), 0))
	d.now = nine.Add(time.Hour)
	if missed, held, err := (Slots{d.Runner}).Miss(t.Context(), "a", nine, "off"); missed || held || err != nil {
		t.Error(missed, held, err)
	}
	d.claimed(r.ID, "ok")
	d.warned(*said, fromLedger)
}

// TestRunThatDidNotTakePlace: its slot is still free.
func TestRunThatDidNotTakePlace(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	at := nine
	r := d.began(d.job("a"), func(r *runlog.Record) { r.Scheduled = &at })
	must(t, r.Begin(t.Context()))
	must(t, r.Remove())
	must(t, d.Slots.Rewrite(slot.Claim{Job: "a", Slot: nine}))
	d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
}
