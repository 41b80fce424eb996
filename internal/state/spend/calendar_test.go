package spend

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

func TestDaysAndMonths(t *testing.T) {
	d := newDesk(t, defaults)
	d.at("2026-02-27 23:59")
	d.reserve("a", 0, 1)
	d.settle("a", 0.5)
	d.reserve("b", 0, 1) // runs over midnight
	d.at("2026-02-28 00:00")
	d.totals("{0 0} {0.5 1} 0")
	d.settle("b", 0.25) // counts on the day on which it began
	d.totals("{0 0} {0.75 0} 0")
	d.reserve("c", 0, 1)
	d.at("2026-03-01 00:10")
	d.totals("{0 0} {0 0} 0")
	d.settle("c", 0.75)
	d.totals("{0 0} {0 0} 0")
	d.at("2026-02-28 12:00")
	d.totals("{0.75 0} {1.5 0} 1")
}

// Who has settled is remembered until there have been runs on two later days, however long that takes.
func TestMemoryOfTheSettled(t *testing.T) {
	d := newDesk(t, defaults)
	d.reserve("a", 0, 1)
	d.settle("a", 0.5)
	d.at("2026-02-26 12:00")
	d.reserve("b", 0, 1)
	d.settle("a", 0.25)
	d.totals("{0 1} {0.25 1} 1")
	d.at("2026-02-28 12:00")
	d.reserve("c", 0, 1)
	d.totals("{0 1} {0.25 2} 1")
	d.settle("a", 0.25) // because of what it said on the 26th
	d.totals("{0 1} {0.25 2} 1")
	d.at("2026-03-02 12:00")
	d.reserve("d", 0, 1)
	d.at("2026-03-03 12:00")
	d.reserve("e", 0, 1)
	d.settle("a", 0.25) // unknown by now: rather counted twice than not at all
	d.totals("{0.25 1} {0.25 2} 2")
	for range 2 {
		d.settle("b", 0.125) // had not settled
	}
	d.at("2026-02-26 12:00")
	if got, err := d.Totals(); err != nil || got.Month != (amounts{0.625, 3}) {
		t.Error(got, err)
	}
}

func TestOldDaysGo(t *testing.T) {
	d, p := newDesk(t, none), newPage()
	for range 100 {
		d.now = d.now.AddDate(0, 0, 1)
		p.add(label(d.now), dollar, 1, false)
	}
	if s := p.sum("2026-01"); s.spent != (kept+1)*dollar || s.runs != kept+1 {
		t.Error(s)
	}
	p.forget("1970-01-01") // for a computer without a battery everything is in the future
	if s := p.sum("1970-01"); s.spent != (kept+1)*dollar || s.runs != kept+1 {
		t.Error(s)
	}
}

// The page does not grow with the runs of a day; a long run that settles after many later ones can still be corrected.
func TestSettledRunsGo(t *testing.T) {
	d, p := newDesk(t, none), newPage()
	for i := range 3 * keptRuns {
		p.add(label(d.now), 0, 1, false)
		p.Runs[fmt.Sprint(1000+i)] = entry{Day: label(d.now)}
		if i > 0 {
			p.add(label(d.now), dollar, 0, false)
			p.Runs[fmt.Sprint(1000+i)] = entry{Day: label(d.now), Cost: dollar, Settled: label(d.now)}
		}
	}
	if err := errors.Join(store.MkdirAll(d.Home.State()), store.WriteJSON(d.path(), p, store.Synced)); err != nil {
		t.Fatal(err)
	}
	d.settle("1000", 0.25)
	d.settle("1000", 1)
	d.totals(fmt.Sprintf("{%v 0} {%[1]v 0} %[1]v", 3*keptRuns))
	newest := fmt.Sprint(999 + 3*keptRuns)
	if runs := d.page().Runs; len(runs) != keptRuns+1 || runs[newest].Settled == "" || runs["1000"].Cost != dollar {
		t.Errorf("%d runs: %v", len(runs), runs)
	}
	for i := range 2 * spareRuns {
		d.settle(fmt.Sprint(2000+i), 0)
		if n := len(d.page().Runs); n > keptRuns+spareRuns {
			t.Fatalf("%d runs", n)
		}
	}
}

// Midnight as the clocks of the place show it, also where there is none that day.
func TestTurnOfTheDay(t *testing.T) {
	for _, test := range []struct{ zone, now, day, month string }{
		{"UTC", "2026-02-24T12:00:00Z", "2026-02-25T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"UTC", "2026-12-31T23:59:59.5Z", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"UTC", "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"Europe/Prague", "2026-03-28T23:30:00Z", "2026-03-30T00:00:00+02:00", "2026-04-01T00:00:00+02:00"}, // 23 hours
		{"Europe/Prague", "2026-10-24T22:00:00Z", "2026-10-26T00:00:00+01:00", "2026-11-01T00:00:00+01:00"}, // 25 hours
		{"Europe/Prague", "2026-09-30T22:00:00Z", "2026-10-02T00:00:00+02:00", "2026-11-01T00:00:00+01:00"}, // 31 days and an hour
		{"America/New_York", "2026-03-08T06:59:59Z", "2026-03-09T00:00:00-04:00", "2026-04-01T00:00:00-04:00"},
		{"Asia/Kathmandu", "2026-02-24T18:14:59Z", "2026-02-25T00:00:00+05:45", "2026-03-01T00:00:00+05:45"},
		{"Africa/Cairo", "2023-04-27T12:00:00Z", "2023-04-28T01:00:00+03:00", "2023-05-01T00:00:00+03:00"},      // no midnight
		{"America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T01:00:00-02:00", "2018-12-01T00:00:00-02:00"}, // nor here
		{"America/Sao_Paulo", "2018-02-17T12:00:00Z", "2018-02-18T00:00:00-03:00", "2018-03-01T00:00:00-03:00"}, // 23:00 twice
		{"America/Havana", "2026-10-31T12:00:00Z", "2026-11-01T00:00:00-04:00", "2026-11-01T00:00:00-04:00"},    // 00:00 twice
		{"Pacific/Apia", "2011-12-29T12:00:00Z", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},      // no 30th
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		now = now.In(zone)
		if got := turn(now, label).Format(time.RFC3339Nano); got != test.day {
			t.Errorf("%s at %s: the day ends %s, want %s", test.zone, test.now, got, test.day)
		}
		if got := turn(now, monthOf).Format(time.RFC3339Nano); got != test.month {
			t.Errorf("%s at %s: the month ends %s, want %s", test.zone, test.now, got, test.month)
		}
	}
}

// Every limit really is lifted when it says so, and not a second before.
func TestLiftedWhenItSays(t *testing.T) {
	for _, zone := range []string{"Europe/Prague", "America/Sao_Paulo", "Africa/Cairo", "America/Havana", "Australia/Lord_Howe"} {
		d := deskAt(t, t.TempDir(), zone, Limits{1, 1, 2.5, 2})
		d.at("2018-10-31 06:30")
		for i := range 9 {
			run := fmt.Sprint(i)
			got, err := d.ask(run, 0, nil, false)
			for ; err != nil; got, err = d.ask(run, 0, nil, false) {
				var limit *Limit
				if !errors.As(err, &limit) {
					t.Fatal(err)
				}
				d.now = limit.Until.Add(-time.Second)
				if _, early := d.ask(run, 0, nil, false); fmt.Sprint(early) != err.Error() {
					t.Errorf("%s: %v a second before %v", zone, early, err)
				}
				d.now = limit.Until
			}
			d.settle(run, got)
		}
		if got := d.now.Format(time.DateOnly); got != "2019-02-03" && got != "2019-01-02" {
			t.Errorf("%s: ends on %s", zone, got)
		}
	}
}

// Money that was counted is counted at every earlier time as well.
func TestClockSetBack(t *testing.T) {
	d := newDesk(t, Limits{1, 1, 2, 500})
	d.reserve("a", 0, 1)
	d.settle("a", 1)
	for _, earlier := range []string{"2026-02-24 00:00", "2026-02-23 12:00", "2026-01-31 12:00", "1970-01-01 00:00"} {
		d.at(earlier)
		d.totals("{1 0} {1 0} 1")
	}
	if _, err := d.ask("b", 0, nil, false); err == nil { // a computer without a battery, before it has asked for the time
		t.Error("granted")
	}
	d.force("b", 0, 1)
	d.settle("b", 0.5)
	d.totals("{1.5 0} {1.5 0} 2")
	d.at("2026-02-24 13:00") // it has
	d.totals("{1 0} {1 0} 1")
	d.refused2("c")
	d.at("2026-02-23 12:00") // a different time: noted as seen again, it counts again
	d.totals("{1 0} {1 0} 1")
	d.at("2026-02-25 00:00")
	d.reserve("c", 0, 1)
}

// refused2 expects a limit; the book may note what the clock did.
func (d *desk) refused2(run string) {
	d.t.Helper()
	if got, err := d.ask(run, 0, nil, false); err == nil {
		d.t.Errorf("Reserve(%s) = %v, want refused", run, got)
	}
}

// A clock that was once years ahead blocks a day and a month, though nothing is granted in the meantime.
func TestClockOnceAhead(t *testing.T) {
	d := newDesk(t, Limits{1, 1, 2, 500})
	d.reserve("a", 0.25, 0.25)
	d.settle("a", 0.25)
	d.at("2031-05-05 12:00")
	d.reserve("b", 0, 1)
	d.settle("b", 1)
	d.at("2026-02-24 13:00")
	d.totals("{1.25 0} {1.25 0} 2")
	d.refused2("c")
	d.refused("c", "limit per-day: 1.25 spent of 1.00 USD, until 2026-02-25T00:00:00+01:00")
	d.at("2026-02-25 00:00")
	d.totals("{0 0} {1.25 0} 0")
	d.reserve("c", 0, 0.75)
	d.at("2026-03-01 00:00")
	d.totals("{0 0} {0 0} 0")
	d.at("2031-05-05 13:00")
	d.totals("{1 0} {1 0} 1")
	d.refused2("d")
	d.at("2031-05-04 13:00")
	d.totals("{1 0} {1 0} 1")
}

// A run that began while the clock was ahead.
func TestClockSetBackDuringARun(t *testing.T) {
	d := newDesk(t, Limits{1, 1, 50, 500})
	d.at("2026-03-02 00:00")
	d.reserve("a", 0, 1)
	d.at("2026-02-24 12:00")
	d.totals("{0 1} {0 1} 1")
	d.settle("a", 0.5)
	d.totals("{0.5 0} {0.5 0} 1")
	d.reserve("b", 0, 0.5)
	d.at("2026-03-02 00:00")
	d.totals("{0.5 0} {0.5 0} 1")
}

// Another zone in the configuration is another clock.
func TestAnotherZone(t *testing.T) {
	d := newDesk(t, Limits{1, 1, 50, 500})
	d.at("2026-02-24 01:00")
	d.reserve("a", 0, 1)
	d.settle("a", 1)
	d.now = d.now.UTC() // whatever zone the clock has: there it is the 23rd still
	d.totals("{1 0} {1 0} 1")
	d.at("2026-02-25 00:30")
	d.now = d.now.UTC()
	d.totals("{0 0} {1 0} 0")
	d.at("2026-02-24 01:00")
	d.Zone = time.FixedZone("", -8*3600)
	d.totals("{1 0} {1 0} 1")
	d.refused2("b")
}
