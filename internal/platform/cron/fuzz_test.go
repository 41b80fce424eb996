package cron_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
)

func FuzzParse(f *testing.F) {
	for _, expr := range []string{
		"* * * * *", "*/5 9-17 * * mon-fri", "30 4 1,15 * 5", "0 0 */2 * 1", "0 0 1,* * 1", "0 0 29 2 *", "0 0 31 2 *",
		"0 9 * * fri-sun", "*/20,5 */3,1 */10,7 jan-mar/2 */4,3", "@weekly", "@reboot", " 5\t4 * * 7 ", "1/20 * * * *",
		"22-2 * * * *", "* * L * ?", "1,,2 * * * *", "60 24 32 13 8", "", "\xff\n", "* * * * * *", "*/99999999999999999999 * * * *",
	} {
		f.Add(expr, int64(1_772_953_200))
	}
	f.Add("30 2 * * *", int64(1_772_953_199)) // the end of the night of a gap
	f.Add("*/20 1 * * *", int64(1_793_512_800))
	f.Add("0 0 29 2 */7", int64(-62_135_596_800))
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expr string, unix int64) {
		s, err := cron.Parse(expr)
		if err != nil {
			checkError(t, expr, err)
			return
		}
		normal := s.String()
		again, err := cron.Parse(normal)
		if err != nil || again != s || again.String() != normal {
			t.Fatalf("%q: normal form %q becomes %q, %v", expr, normal, again, err)
		}
		at := time.Unix(unix%200_000_000_000, 0) // some six thousand years either way
		next, ok := s.Next(at, zone)
		if !ok {
			return
		}
		if s.Never() || !next.After(at) || next.Second() != 0 || next.Location() != zone {
			t.Fatalf("%q: Next(%v) is %v", expr, at, next)
		}
		if prev, ok := s.Prev(next, zone); !ok || !prev.Equal(next) {
			t.Fatalf("%q: Prev(%v) is %v, %v", expr, next, prev, ok)
		}
		if prev, ok := s.Prev(next.Add(-1), zone); ok && prev.After(at) {
			t.Fatalf("%q: Next(%v) is %v, later than %v", expr, at, next, prev)
		}
	})
}

// FuzzForms writes what was parsed in every other form.
func FuzzForms(f *testing.F) {
	for _, expr := range []string{
		"* * * * *", "*/7 */5 */2 */5 */2", "30 4 1,15 * 5", "0 0 */2 * 1", "0 0 1-29 2 */3", "0 0 29 2 */7", "0 0 31 2 1",
		"0 0 31 2,4 *", "* 9 13 * fri", "5,* 0-23 30,31 feb-apr sun", "@weekly", "0 0 */31,2-30 4 1",
	} {
		f.Add(expr, int64(1_772_953_200))
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expr string, unix int64) {
		s, err := cron.Parse(expr)
		if err != nil {
			return
		}
		at := time.Unix(unix%200_000_000_000, 0)
		checkLine(t, s, at, zone)
		lines := s.OnCalendar("Europe/Paris")
		if (lines == nil) != s.Never() || len(lines) > 2 {
			t.Fatalf("%q: OnCalendar is %q", expr, lines)
		}
		words := s.Words()
		if (words == "never") != s.Never() {
			t.Fatalf("%q: never is %v, the words are %q", expr, s.Never(), words)
		}
		for _, text := range slices.Concat(lines, s.Surprises(), []string{words}) {
			if text != strings.Join(strings.Fields(text), " ") || text == "" || strings.HasSuffix(text, ".") {
				t.Fatalf("%q: not a plain line: %q", expr, text)
			}
		}
		year := at.UTC().Year()
		if n := s.PerYear(year); n < 0 || n > 366*24*60 || n > 0 && s.Never() {
			t.Fatalf("%q fires %d times in %d", expr, n, year)
		}
	})
}

// checkLine compares a few fires of a schedule with those of its crontab line.
func checkLine(t *testing.T, s cron.Schedule, at time.Time, zone *time.Location) {
	t.Helper()
	line, ok := s.Crontab()
	if !ok {
		return
	}
	again, err := cron.Parse(line)
	if err != nil || again.Wild() != s.Wild() {
		t.Fatalf("%q: %q, wild is %v, %v", s, line, again.Wild(), err)
	}
	for range 5 {
		want, ok := s.Next(at, zone)
		got, also := again.Next(at, zone)
		if also != ok || !got.Equal(want) {
			t.Fatalf("%q: Next(%v) is %v, of %q %v", s, at, want, line, got)
		}
		if !ok {
			return
		}
		at = want
	}
}
