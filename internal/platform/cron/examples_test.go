package cron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
)

const minuteForm = "2006-01-02 15:04"

// known is a schedule and all its fires in a window (from, to].
type known struct {
	expr  string
	fires string // in the form of the test, separated by commas
}

// checkKnown finds the fires of a window in three ways and compares them.
func checkKnown(t *testing.T, zone *time.Location, from, to, form string, tests []known) {
	t.Helper()
	start, end := instant(t, from, zone), instant(t, to, zone)
	for _, test := range tests {
		s := parse(t, test.expr)
		want := strings.Split(test.fires, ", ")
		if test.fires == "" {
			want = nil
		}
		for way, fires := range everyWay(s, start, end, zone) {
			var got []string
			for _, fire := range fires {
				got = append(got, fire.Format(form))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q\n got %s\nwant %s", zone, way, test.expr, strings.Join(got, ", "), test.fires)
			}
		}
	}
}

func everyWay(s cron.Schedule, start, end time.Time, zone *time.Location) map[string][]time.Time {
	between := slices.Collect(s.Between(start, end, zone))
	var next, prev []time.Time
	for at, ok := s.Next(start, zone); ok && !at.After(end); at, ok = s.Next(at, zone) {
		next = append(next, at)
	}
	for at, ok := s.Prev(end, zone); ok && at.After(start); at, ok = s.Prev(at.Add(-time.Nanosecond), zone) {
		prev = append(prev, at)
	}
	slices.Reverse(prev)
	return map[string][]time.Time{"Between": between, "Next": next, "Prev": prev}
}

// instant reads a time that is outside gaps and overlaps, or has an offset.
func instant(t testing.TB, text string, zone *time.Location) time.Time {
	t.Helper()
	at, err := time.ParseInLocation(minuteForm, text, zone)
	if err != nil {
		at, err = time.Parse(minuteForm+" -0700", text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// Cases in which well-known engines disagree. 2026 starts on a Thursday.
func TestDays(t *testing.T) {
	checkKnown(t, time.UTC, "2025-12-31 23:59", "2026-01-31 23:59", "Mon 2 15:04", []known{
		{"0 0 13 * 5", "Fri 2 00:00, Fri 9 00:00, Tue 13 00:00, Fri 16 00:00, Fri 23 00:00, Fri 30 00:00"},
		{"0 0 */2 * 1", "Mon 5 00:00, Mon 19 00:00"},
		{"0 0 1-31/2 * 1", "Thu 1 00:00, Sat 3 00:00, Mon 5 00:00, Wed 7 00:00, Fri 9 00:00, Sun 11 00:00, Mon 12 00:00, " +
			"Tue 13 00:00, Thu 15 00:00, Sat 17 00:00, Mon 19 00:00, Wed 21 00:00, Fri 23 00:00, Sun 25 00:00, " +
			"Mon 26 00:00, Tue 27 00:00, Thu 29 00:00, Sat 31 00:00"},
		{"0 0 5-19 * */7", "Sun 11 00:00, Sun 18 00:00"},
		{"0 9 * * 7", "Sun 4 09:00, Sun 11 09:00, Sun 18 09:00, Sun 25 09:00"},
		{"0 9 10-31 2-12 5-7", ""},
		{"0 9 10,11,12 * 5-7", "Fri 2 09:00, Sat 3 09:00, Sun 4 09:00, Fri 9 09:00, Sat 10 09:00, Sun 11 09:00, Mon 12 09:00, " +
			"Fri 16 09:00, Sat 17 09:00, Sun 18 09:00, Fri 23 09:00, Sat 24 09:00, Sun 25 09:00, Fri 30 09:00, Sat 31 09:00"},
		{"0 0 31 2 *", ""},
		{"59 23 31 * *", "Sat 31 23:59"},
		{"59 23 31 * 3,4", "Thu 1 23:59, Wed 7 23:59, Thu 8 23:59, Wed 14 23:59, Thu 15 23:59, Wed 21 23:59, Thu 22 23:59, " +
			"Wed 28 23:59, Thu 29 23:59, Sat 31 23:59"},
	})
	checkKnown(t, time.UTC, "2026-01-01 00:00", "2026-01-05 00:00", "2", []known{
		{"0 0 1,* * 1", "2, 3, 4, 5"},
		{"0 0 1-31 * 5", "2, 3, 4, 5"},
		{"0 0 * * 0-7", "2, 3, 4, 5"},
		{"0 0 2 * 1-7", "2, 3, 4, 5"},
		{"0 0 3 * *,1", "3"},
		{"0 0 *,3 * 1", "5"},
		{"0 9 * * 5-7", "2, 3, 4"},
		{"0 9 * * fri-sun", "2, 3, 4"},
	})
	checkKnown(t, time.UTC, "2088-01-01 00:00", "2112-01-01 00:00", "2006-01-02", []known{
		{"0 0 29 2 *", "2088-02-29, 2092-02-29, 2096-02-29, 2104-02-29, 2108-02-29"},
		{"0 0 31 12 */7", "2090-12-31, 2102-12-31"},
		{"0 0 31 4 *", ""},
	})
}

func TestHorizon(t *testing.T) {
	rare := parse(t, "0 0 29 2 */7") // 29 February on a Sunday
	from := time.Date(2088, 3, 1, 0, 0, 0, 0, time.UTC)
	to := time.Date(2128, 2, 29, 0, 0, 0, 0, time.UTC)
	if at, ok := rare.Next(from, time.UTC); ok {
		t.Errorf("Next looks %v ahead", at.Sub(from))
	}
	if at, ok := rare.Prev(to.Add(-1), time.UTC); ok {
		t.Errorf("Prev looks %v back", to.Sub(at))
	}
	if got := slices.Collect(rare.Between(from, to, time.UTC)); !slices.Equal(got, []time.Time{to}) {
		t.Errorf("Between found %v, want %v", got, to)
	}

	far := time.Date(2032, 2, 29, 0, 0, 0, 0, time.UTC) // the last one was in 2004
	if at, ok := rare.Prev(far.Add(-1), time.UTC); !ok || at.Year() != 2004 {
		t.Errorf("Prev of %v is %v, %v", far, at, ok)
	}
	if at, ok := rare.Next(far, time.UTC); !ok || at.Year() != 2060 {
		t.Errorf("Next of %v is %v, %v", far, at, ok)
	}

	// 30 years are 10957.5 days, counted to the second.
	const reach = 10957*24*time.Hour + 12*time.Hour
	first := time.Date(2088, 2, 29, 0, 0, 0, 0, time.UTC)
	for beyond := range time.Duration(2) {
		if at, ok := rare.Next(to.Add(-reach-beyond*time.Second), time.UTC); ok != (beyond == 0) {
			t.Errorf("Next: %v, %v at %d s beyond 30 years", at, ok, beyond)
		}
		if at, ok := rare.Prev(first.Add(reach+beyond*time.Second), time.UTC); ok != (beyond == 0) {
			t.Errorf("Prev: %v, %v at %d s beyond 30 years", at, ok, beyond)
		}
	}
}

func TestZeroAndNever(t *testing.T) {
	now := time.Date(2026, 3, 8, 1, 59, 59, 999_999_999, time.UTC)
	for _, s := range []cron.Schedule{{}, parse(t, "0 0 31 2 *")} {
		if at, ok := s.Next(now, time.UTC); ok || !at.IsZero() {
			t.Errorf("%q: Next is %v", s, at)
		}
		if at, ok := s.Prev(now, time.UTC); ok || !at.IsZero() {
			t.Errorf("%q: Prev is %v", s, at)
		}
		for at := range s.Between(now, now.AddDate(1000, 0, 0), time.UTC) {
			t.Fatalf("%q: Between yields %v", s, at)
		}
		if !s.Never() {
			t.Errorf("%q can fire", s)
		}
	}
	if text := (cron.Schedule{}).String(); text != "" {
		t.Errorf("the zero schedule is %q", text)
	}
}

func TestBetweenStops(t *testing.T) {
	s := parse(t, "* * * * *")
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	n := 0
	for range s.Between(from, from.AddDate(1, 0, 0), time.UTC) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d rounds", n)
	}
	for at := range s.Between(from, from.Add(-time.Hour), time.UTC) {
		t.Errorf("backwards: %v", at)
	}
}

func ExampleSchedule_Next() {
	s, err := cron.Parse("30 2 * * mon-fri")
	if err != nil {
		fmt.Println(err)
		return
	}
	next, ok := s.Next(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), time.UTC)
	fmt.Println(s, ok, next.Format(time.RFC1123))
	// Output: 30 2 * * 1,2,3,4,5 true Mon, 05 Jan 2026 02:30:00 UTC
}
