package cron_test

import (
	"math/rand"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/testkit"
)

// tick is a real instant at which a clock shows a whole minute.
type tick struct {
	at     time.Time
	civil  time.Time   // what the clock shows, as if it were UTC
	again  bool        // the clock has shown this before
	missed []time.Time // civil minutes that were skipped just before
}

// walk goes through real time in half minutes, which suits every zone used
// here, and notes what the clock on the wall does.
func walk(zone *time.Location, from, to time.Time) []tick {
	const minute = 60
	shown := map[int64]bool{}
	var ticks []tick
	var previous int64
	for at := from.Add(-72 * time.Hour).Truncate(time.Minute); !at.After(to); at = at.Add(30 * time.Second) {
		local := at.In(zone)
		if local.Second() != 0 {
			continue
		}
		year, month, day := local.Date()
		civil := time.Date(year, month, day, local.Hour(), local.Minute(), 0, 0, time.UTC)
		key := civil.Unix() / minute
		one := tick{at: local, civil: civil, again: shown[key]}
		for lost := previous + 1; previous != 0 && lost < key; lost++ {
			if !shown[lost] {
				one.missed = append(one.missed, time.Unix(lost*minute, 0).UTC())
			}
		}
		shown[key], previous = true, key
		if at.After(from) {
			ticks = append(ticks, one)
		}
	}
	return ticks
}

// fires is the whole policy, minute by minute.
func (s *spec) fires(ticks []tick) []time.Time {
	var fires []time.Time
	for _, one := range ticks {
		fire := s.matches(one.civil)
		if !s.wild() {
			fire = fire && !one.again || slices.ContainsFunc(one.missed, s.matches)
		}
		if fire {
			fires = append(fires, one.at)
		}
	}
	return fires
}

type window struct {
	zone, from string
	days       int
}

// Every window with a change of clocks has it in the middle.
var windows = []window{
	{"UTC", "2024-02-25 00:00", 10},
	{"UTC", "1999-12-28 00:00", 10},
	{"UTC", "1969-12-25 00:00", 14},
	{"America/New_York", "2026-03-06 00:00", 5},
	{"America/New_York", "2026-10-30 00:00", 5},
	{"America/New_York", "2040-12-29 00:00", 5}, // ZoneBounds errs on 31 December
	{"Europe/London", "2026-03-27 00:00", 5},
	{"Europe/London", "2026-10-23 00:00", 5},
	{"Australia/Lord_Howe", "2026-04-03 00:00", 5},
	{"Australia/Lord_Howe", "2026-10-02 00:00", 5},
	{"Australia/Lord_Howe", "2040-12-29 00:00", 5},
	{"America/Sao_Paulo", "2017-10-13 00:00", 5},
	{"America/Sao_Paulo", "2018-02-15 00:00", 5},
	{"America/Sao_Paulo", "2018-11-02 00:00", 5},
	{"Asia/Beirut", "2026-03-27 00:00", 5},
	{"Asia/Beirut", "2026-10-22 00:00", 5},
	{"Pacific/Apia", "2011-12-28 00:00", 5},
	{"Pacific/Kwajalein", "1969-09-28 00:00", 5},
	{"Pacific/Kwajalein", "1993-08-19 00:00", 5},
	{"Antarctica/Troll", "2026-03-27 00:00", 5}, // two hours
	{"Africa/Monrovia", "1972-01-05 00:00", 5},  // 44 minutes and 30 seconds
}

func TestBruteForce(t *testing.T) {
	r := rand.New(rand.NewSource(20261121))
	for _, w := range windows {
		zone := load(t, w.zone)
		from := instant(t, w.from, zone)
		bruteForce(t, r, zone, from, from.AddDate(0, 0, w.days), testkit.Full(60, 20))
	}
}

// A year of dates, with times that are not checked at every minute.
func TestBruteForceYear(t *testing.T) {
	count := testkit.Full(100, 30)
	r := rand.New(rand.NewSource(4))
	from := time.Date(2027, 12, 31, 23, 59, 0, 0, time.UTC)
	ticks := walk(time.UTC, from, from.AddDate(1, 0, 1))
	ticks = slices.DeleteFunc(ticks, func(one tick) bool { return one.civil.Hour() != 7 || one.civil.Minute() != 5 })
	for range count {
		s := randomSpec(r, mix{})
		for i := range 60 {
			s.set[0][i], s.set[1][i] = i == 5, i == 7
		}
		s.star[0], s.star[1] = false, false
		s.text = "5 7 " + afterTwoFields(s.text)
		checkSpec(t, r, &s, ticks, time.UTC, from, from.AddDate(1, 0, 1))
	}
}

func afterTwoFields(text string) string {
	for range 2 {
		for text[0] != ' ' {
			text = text[1:]
		}
		text = text[1:]
	}
	return text
}

func bruteForce(t *testing.T, r *rand.Rand, zone *time.Location, from, to time.Time, count int) {
	t.Helper()
	ticks := walk(zone, from, to)
	for i := range count {
		s := randomSpec(r, mix{plainDays: i%4 != 0, nights: i%3 != 0})
		checkSpec(t, r, &s, ticks, zone, from, to)
	}
}

// checkSpec compares the package with the walk in the window (from, to].
func checkSpec(t *testing.T, r *rand.Rand, s *spec, ticks []tick, zone *time.Location, from, to time.Time) {
	t.Helper()
	want := s.fires(ticks)
	parsed := parse(t, s.text)
	if again := parse(t, parsed.String()); again != parsed {
		t.Errorf("%q: normal form %q becomes %q", s.text, parsed, again)
	}
	if parsed.Wild() != s.wild() {
		t.Errorf("%q: wild is %v", s.text, parsed.Wild())
	}
	got := slices.Collect(parsed.Between(from, to, zone))
	if !slices.EqualFunc(got, want, sameTime) {
		t.Fatalf("%s: %q between %v and %v\n got %v\nwant %v", zone, s.text, from, to, got, want)
	}
	for range 10 {
		at := from.Add(time.Duration(r.Int63n(int64(to.Sub(from)))))
		if len(want) > 0 && r.Intn(2) == 0 { // at a fire or a nanosecond beside it
			at = want[r.Intn(len(want))].Add(time.Duration(r.Intn(3) - 1))
		}
		if at.Before(from) || at.After(to) {
			continue
		}
		checkNeighbours(t, parsed, want, at, zone, from, to)
	}
}

// checkNeighbours asks for the fires before and after an instant of a window.
func checkNeighbours(t *testing.T, s cron.Schedule, fires []time.Time, at time.Time, zone *time.Location, from, to time.Time) {
	t.Helper()
	later := sort.Search(len(fires), func(i int) bool { return fires[i].After(at) })
	next, ok := s.Next(at, zone)
	switch {
	case later < len(fires) && (!ok || !sameTime(next, fires[later])):
		t.Fatalf("%s: %q: Next(%v) is %v, %v, want %v", zone, s, at, next, ok, fires[later])
	case later == len(fires) && ok && !next.After(to):
		t.Fatalf("%s: %q: Next(%v) is %v, want none until %v", zone, s, at, next, to)
	}
	prev, ok := s.Prev(at, zone)
	switch {
	case later > 0 && (!ok || !sameTime(prev, fires[later-1])):
		t.Fatalf("%s: %q: Prev(%v) is %v, %v, want %v", zone, s, at, prev, ok, fires[later-1])
	case later == 0 && ok && prev.After(from):
		t.Fatalf("%s: %q: Prev(%v) is %v, want none since %v", zone, s, at, prev, from)
	}
}

// sameTime also compares the zone in which a time is given.
func sameTime(a, b time.Time) bool {
	return a.Equal(b) && a.Location() == b.Location()
}

// Far from any window, Prev must still undo Next and in reverse.
func TestPrevUndoesNext(t *testing.T) {
	count := testkit.Full(600, 200)
	r := rand.New(rand.NewSource(7))
	for i := range count {
		s := randomSpec(r, mix{nights: true})
		parsed := parse(t, s.text)
		zone := load(t, windows[i%len(windows)].zone)
		at := time.Unix(r.Int63n(6e9)-2e9, r.Int63n(1e9))
		for range 5 {
			next, ok := parsed.Next(at, zone)
			if !ok {
				break
			}
			prev, _ := parsed.Prev(next.Add(-time.Nanosecond), zone)
			last, _ := parsed.Prev(at, zone)
			same, _ := parsed.Prev(next, zone)
			if !next.After(at) || !prev.Equal(last) || prev.After(at) || !same.Equal(next) {
				t.Fatalf("%s: %q: from %v Next is %v; Prev of it %v, just before it %v, of the start %v",
					zone, s.text, at, next, same, prev, last)
			}
			at = next
		}
	}
}
