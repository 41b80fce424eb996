package spend

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

// start reserves for a run of a job, and returns the reservation and the run's highest cost.
func (d *desk) start(run, job string) string {
	d.t.Helper()
	g, err := d.Reserve(ctx, Claim{Run: run, Job: job}, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return fmt.Sprint(g.Reserved, " of ", g.Most)
}

func (d *desk) wants(got, want string) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s, want %s", got, want)
	}
}

// TestLikely: a run reserves a share of what it may cost, or what its job's runs did cost.
func TestLikely(t *testing.T) {
	d := newDesk(t, defaults)
	d.Share = 4
	d.wants(d.start("1", "a"), "0.25 of 1")
	d.settle("1", 0.4)
	d.wants(d.start("2", "a"), "0.4 of 1")
	d.settle("2", 0.2)
	d.wants(d.start("3", "a"), "0.35 of 1") // what was dear once may be so again
	d.settle("3", 0)                        // it failed before it could cost anything
	d.wants(d.start("4", "a"), "0.35 of 1")
	d.wants(d.start("5", "b"), "0.25 of 1")
	if g, err := d.Reserve(ctx, Claim{Run: "6", Job: "a", Most: 0.1}, nil); g != (granted{0.1, 0.1}) || err != nil {
		t.Error(g, err)
	}
	d.Limits.PerRun = inf
	d.wants(d.start("7", "c"), "1.1 of 4.4") // a quarter of what is not yet spent today
	d.Limits = none
	d.wants(d.start("8", "c"), "+Inf of +Inf")
}

// TestReleasedNeeds: a run that could not go on for want of money lets the next of its job ask for enough.
func TestReleasedNeeds(t *testing.T) {
	d := newDesk(t, defaults)
	d.Share = 4
	d.start("1", "a")
	if err := d.Release(ctx, "1", 0.75); err != nil {
		t.Fatal(err)
	}
	d.totals("{0 0} {0 0} 0")
	d.wants(d.start("2", "a"), "0.75 of 1")
}

func TestHabitsAreForgotten(t *testing.T) {
	d := newDesk(t, none)
	d.start("1", "a")
	d.settle("1", 2)
	for range 70 {
		d.now = d.now.AddDate(0, 0, 1)
		d.start(fmt.Sprint("b", d.now), "b")
		d.settle(fmt.Sprint("b", d.now), 1)
	}
	d.wants(d.start("2", "a"), "+Inf of +Inf")
	d.Share, d.Limits = 4, Limits{10, 500, 500, 500}
	d.now = d.now.AddDate(0, 0, 1)
	d.start("3", "a")                     // the first of a day forgets
	d.wants(d.start("4", "b"), "1 of 10") // what b's runs did cost lately is known still
}

// TestRaise: a run gets what it needs if it is there, and what it wishes for if others still find enough.
func TestRaise(t *testing.T) {
	d := newDesk(t, Limits{5, 2, 50, 500})
	d.Share = 4
	raise := func(run string, least, most, want float64) {
		t.Helper()
		if got, err := d.Raise(ctx, run, least, most, nil); got != want || err != nil {
			t.Errorf("Raise(%s, %v, %v) = %v, %v, want %v", run, least, most, got, err, want)
		}
	}
	d.start("1", "a")
	d.start("2", "b")
	d.totals("{0 1} {0 1} 2") // half of it each
	raise("1", 0.1, 0.3, 0.3)
	raise("1", 0.1, 4, 0.75) // a quarter of the dollar that is left
	d.totals("{0 1.25} {0 1.25} 2")
	raise("2", 0.9, 4, 0.9)
	raise("2", 0.1, 0.2, 0.2) // it keeps what it has
	d.totals("{0 1.65} {0 1.65} 2")
	limit := &Limit{}
	if _, err := d.Raise(ctx, "2", 1.3, 4, nil); !errors.As(err, &limit) || !limit.Passing || limit.Needs != 1.3 {
		t.Error(err)
	}
	if _, err := d.Raise(ctx, "2", 2.1, 4, nil); !errors.As(err, &limit) || limit.Passing {
		t.Error(err)
	}
	d.totals("{0 1.65} {0 1.65} 2")
	d.settle("1", 0.2)
	raise("2", 1.3, 1.3, 1.3)
	d.force("3", 0, 0.5)
	raise("3", 4, 5, 5) // the owner's
	d.settle("2", 1)
	if _, err := d.Raise(ctx, "2", 1, 1, nil); err == nil {
		t.Error("a settled run was raised")
	}
	raise("3", 5, 6, 6)
	d.now = d.now.AddDate(0, 0, 1)
	raise("3", 6, 7, 7) // it counts on the day on which it began
	d.totals("{0 0} {1.2 7} 0")
}

// TestRaiseAfterADeath: the reservation of a run that has died does not block a raise.
func TestRaiseAfterADeath(t *testing.T) {
	d := newDesk(t, Limits{5, 2, 50, 500})
	d.Share = 4
	d.start("1", "a")
	d.start("2", "b")
	d.totals("{0 1} {0 1} 2")
	look := func(run string) (cost float64, alive bool) { return 0.2, run == "2" }
	if got, err := d.Raise(ctx, "2", 1.8, 4, look); got != 1.8 || err != nil {
		t.Errorf("%v, %v, want the 1.8 that the dead run has left", got, err)
	}
	d.totals("{0.2 1.8} {0.2 1.8} 2")
	limit := &Limit{}
	for _, wish := range [][2]float64{{math.NaN(), 4}, {-1, 4}, {1.9, math.NaN()}} {
		if got, err := d.Raise(ctx, "2", wish[0], wish[1], look); got != 0 || !errors.Is(err, errCost) {
			t.Errorf("%v: %v, %v", wish, got, err)
		}
	}
	if _, err := d.Raise(ctx, "2", 1.9, 4, look); !errors.As(err, &limit) || limit.Passing {
		t.Error(err)
	}
}
