package budget

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	min := time.Minute
	for want, s := range map[string]Status{
		"budget: 3/5 (next refill in 42 min)\nused today: 2. critical bypasses: 0.":    {5, 3.54, 90 * min, 42 * min, 2, 0},
		"budget: 3/5 (next refill in 42 min)\nused today: 0. critical bypasses: 1.":    {5, 3.99, 90 * min, 41*min + 1, 0, 1},
		"budget: 0/5 (next refill in 1 min)\nused today: 0. critical bypasses: 0.":     {5, 0.9999, 90 * min, 1, 0, 0},
		"budget: 1/9 (next refill in 10080 min)\nused today: 0. critical bypasses: 0.": {9, 1, 7 * 24 * 60 * min, 7 * 24 * 60 * min, 0, 0},
		"budget: 5/5 (full)\nused today: 12. critical bypasses: 3.":                    {5, 5, 90 * min, 0, 12, 3},
		"budget: 0/0 (critical pings only)\nused today: 1. critical bypasses: 1.":      {0, 0, 90 * min, 0, 1, 1},
	} {
		if got := s.Full(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if line, _, _ := strings.Cut(want, "\n"); s.String() != line {
			t.Errorf("got %q, want %q", s, line)
		}
	}
}

func TestRefills(t *testing.T) {
	min := time.Minute
	s := Status{Capacity: 5, Available: 1.5, RefillEvery: 90 * min, NextRefill: 45 * min}
	for within, want := range map[time.Duration]int{
		-min: 0, 0: 0, 45*min - 1: 0, 45 * min: 1, 135*min - 1: 1, 135 * min: 2, 225 * min: 3, 315 * min: 4, 405 * min: 4, 1<<63 - 1: 4,
	} {
		if got := s.Refills(within); got != want {
			t.Errorf("%s: %d, want %d", within, got, want)
		}
	}
	for _, s := range []Status{{}, {Capacity: 5, Available: 5, RefillEvery: min}, {RefillEvery: min}, {NextRefill: min}} {
		if got := s.Refills(time.Hour); got != 0 {
			t.Errorf("%+v: %d", s, got)
		}
	}
}

func TestTake(t *testing.T) {
	d := newDesk(t)
	d.shows("budget: 5/5 (full), used today: 0. critical bypasses: 0.")
	d.pass(48 * time.Hour)
	d.takes(5)
	d.take(false)
	d.shows("budget: 0/5 (next refill in 90 min), used today: 5. critical bypasses: 0.")
	d.pass(45 * time.Minute)
	d.take(false)
	d.pass(45*time.Minute - time.Second)
	d.shows("budget: 0/5 (next refill in 1 min), used today: 5. critical bypasses: 0.")
	d.take(false)
	d.pass(time.Second)
	d.take(true)
	d.take(false)
	d.shows("budget: 0/5 (next refill in 90 min), used today: 6. critical bypasses: 0.")
	d.pass(7 * time.Hour)
	d.shows("budget: 4/5 (next refill in 30 min), used today: 6. critical bypasses: 0.")
	d.pass(30 * time.Minute)
	d.shows("budget: 5/5 (full), used today: 6. critical bypasses: 0.")
}

func TestCritical(t *testing.T) {
	d := newDesk(t)
	d.takes(5)
	d.critical()
	d.critical()
	d.shows("budget: 0/5 (next refill in 90 min), used today: 5. critical bypasses: 2.")
	d.giveBack(true)
	d.shows("budget: 0/5 (next refill in 90 min), used today: 5. critical bypasses: 1.")
	d.giveBack(true)
	d.giveBack(true)
	d.shows("budget: 0/5 (next refill in 90 min), used today: 5. critical bypasses: 0.")
}

func TestReturn(t *testing.T) {
	d := newDesk(t)
	d.takes(2)
	d.pass(45 * time.Minute)
	d.giveBack(false)
	d.shows("budget: 4/5 (next refill in 45 min), used today: 1. critical bypasses: 0.")
	for range 3 {
		d.giveBack(false)
	}
	d.shows("budget: 5/5 (full), used today: 0. critical bypasses: 0.")
}

// What has come back at an old rate stays; a raised capacity brings no tokens, a lowered one cuts.
func TestSet(t *testing.T) {
	d := newDesk(t)
	d.takes(4)
	d.pass(45 * time.Minute)
	d.set(-1, 10)
	d.shows("budget: 1/5 (next refill in 5 min), used today: 4. critical bypasses: 0.")
	d.pass(5 * time.Minute)
	d.set(-1, 90)
	d.shows("budget: 2/5 (next refill in 90 min), used today: 4. critical bypasses: 0.")
	d.set(3, -1)
	d.shows("budget: 2/3 (next refill in 90 min), used today: 4. critical bypasses: 0.")
	d.set(1, 60)
	d.shows("budget: 1/1 (full), used today: 4. critical bypasses: 0.")
	d.set(6, -1)
	d.shows("budget: 1/6 (next refill in 60 min), used today: 4. critical bypasses: 0.")
	d.set(0, -1)
	d.shows("budget: 0/0 (critical pings only), used today: 4. critical bypasses: 0.")
	d.pass(100 * time.Hour)
	d.take(false)
	d.giveBack(false)
	d.take(false)
	d.set(2, -1)
	d.shows("budget: 0/2 (next refill in 60 min), used today: 0. critical bypasses: 0.")
}

func TestSetRefuses(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		capacity, rate *int
		want           error
		words          string
	}{
		{new(-1), nil, ErrCapacity, "capacity -1: want 0 to 1000 tokens"},
		{new(1001), new(90), ErrCapacity, "capacity 1001: want 0 to 1000 tokens"},
		{nil, new(0), ErrRate, "rate 0: want 1 to 10080 minutes"},
		{new(1), new(10081), ErrRate, "rate 10081: want 1 to 10080 minutes"},
		{nil, new(-5), ErrRate, "rate -5: want 1 to 10080 minutes"},
	} {
		if err := d.Set(ctx, c.capacity, c.rate); !errors.Is(err, c.want) || err.Error() != c.words {
			t.Errorf("got %v, want %s", err, c.words)
		}
	}
	if d.file() != "" {
		t.Errorf("written: %s", d.file())
	}
	d.set(1000, 10080)
	d.shows("budget: 5/1000 (next refill in 10080 min), used today: 0. critical bypasses: 0.")
	d.set(0, 1)
}

// A clock set back takes nothing away, and does not stop the bucket until it is again what it was: not even for those who
// find nothing to take.
func TestClockSetBack(t *testing.T) {
	d := newDesk(t)
	d.takes(5)
	d.pass(45 * time.Minute)
	d.take(false)
	d.pass(-1000 * 24 * time.Hour)
	d.shows("budget: 0/5 (next refill in 45 min), used today: 0. critical bypasses: 0.")
	d.take(false)
	d.pass(45 * time.Minute)
	d.take(true)
	d.take(false)
	d.pass(90 * time.Minute)
	d.take(true)
	d.pass(-time.Minute)
	d.critical()
	d.pass(91 * time.Minute)
	d.shows("budget: 1/5 (next refill in 89 min), used today: 2. critical bypasses: 1.")
}

// Sums of thirds are whole in the end.
func TestFractions(t *testing.T) {
	for _, step := range []time.Duration{7 * time.Second, 10 * time.Minute, 13 * time.Minute} {
		d := newDesk(t)
		d.takes(5)
		began := d.now
		for range 45 {
			d.pass(step)
			s, err := d.edit(ctx, func(*Status) {})
			if err != nil {
				t.Fatal(err)
			}
			passed := d.now.Sub(began)
			if want := min(int(passed/(90*time.Minute)), 5); int(s.Available) != want {
				t.Fatalf("after %s: %v", passed, s.Available)
			}
			if want := 90*time.Minute - passed%(90*time.Minute); s.Available < 5 && s.NextRefill != want {
				t.Fatalf("after %s: the next in %s, want %s", passed, s.NextRefill, want)
			}
		}
	}
}

// What a clock has below a microsecond is not in the file, and so neither lost nor won.
func TestNanoseconds(t *testing.T) {
	d := newDesk(t)
	d.takes(3)
	d.pass(10*time.Minute + 567)
	d.take(true) // compares what it says with what is then read
}

func TestDays(t *testing.T) {
	for _, c := range []struct{ zone, last, first string }{
		{"Europe/Prague", "2026-02-24 23:59:59", "2026-02-25 00:00:00"},
		{"Europe/Prague", "2026-03-29 23:59:59", "2026-03-30 00:00:00"}, // a day of 23 hours
		{"Europe/Prague", "2026-10-25 23:59:59", "2026-10-26 00:00:00"}, // and of 25
		{"Asia/Beirut", "2026-03-28 23:59:59", "2026-03-29 01:00:00"},   // a day without a midnight
		{"Pacific/Apia", "2011-12-29 23:59:59", "2011-12-31 00:00:00"},  // a date that never was
		{"UTC", "2026-12-31 23:59:59", "2027-01-01 00:00:00"},
	} {
		d := deskAt(t, t.TempDir(), c.zone)
		d.at(c.last)
		d.takes(2)
		d.critical()
		d.shows("budget: 3/5 (next refill in 90 min), used today: 2. critical bypasses: 1.")
		d.pass(time.Second)
		if got := d.now.Format(time.DateTime); got != c.first {
			t.Errorf("%s: %s, want %s", c.zone, got, c.first)
		}
		d.shows("budget: 3/5 (next refill in 90 min), used today: 0. critical bypasses: 0.")
		d.giveBack(false) // of yesterday
		d.critical()
		d.shows("budget: 4/5 (next refill in 90 min), used today: 0. critical bypasses: 1.")
	}
}

// In Beirut summer ends at midnight, so that the last hour of that day comes twice. It is one day, and 90 minutes are 90.
func TestHourTwice(t *testing.T) {
	d := deskAt(t, t.TempDir(), "Asia/Beirut")
	d.at("2026-10-24 22:30:00")
	d.takes(5)
	d.pass(90 * time.Minute)
	if got := d.now.Format("02 15:04 -07"); got != "24 23:00 +02" {
		t.Error(got)
	}
	d.shows("budget: 1/5 (next refill in 90 min), used today: 5. critical bypasses: 0.")
	d.take(true)
	d.pass(time.Hour - time.Second)
	d.shows("budget: 0/5 (next refill in 31 min), used today: 6. critical bypasses: 0.")
	d.pass(time.Second)
	d.shows("budget: 0/5 (next refill in 30 min), used today: 0. critical bypasses: 0.")
}

// Looking writes nothing, not even a directory.
func TestStatusOnlyReads(t *testing.T) {
	d := newDesk(t)
	d.shows("budget: 5/5 (full), used today: 0. critical bypasses: 0.")
	if found, err := os.ReadDir(string(d.Home)); len(found) != 0 || err != nil {
		t.Error(found, err)
	}
	d.put(map[string]any{"available": 1, "last_refill": "2026-02-24T11:00:00+01:00"})
	before := d.file()
	d.shows("budget: 1/5 (next refill in 30 min), used today: 0. critical bypasses: 0.")
	if found, err := os.ReadDir(d.Home.State()); len(found) != 1 || err != nil || d.file() != before {
		t.Error(found, err, d.file())
	}
	if err := errors.Join(os.Remove(d.Home.PingBudget()), os.Mkdir(d.Home.PingBudget(), 0o700)); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Status(); err == nil || s != (Status{}) {
		t.Error(s, err)
	}
}
