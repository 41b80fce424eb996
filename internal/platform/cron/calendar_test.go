package cron_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/testkit"
)

func TestOnCalendar(t *testing.T) {
	tests := []struct {
		expr, zone string
		lines      []string
	}{
		{"* * * * *", "UTC", []string{"*-*-* *:*:00 UTC"}},
		{"0 9 * * 1-5", "", []string{"Mon,Tue,Wed,Thu,Fri *-*-* 09:00:00"}},
		{"0 9 * * *", "Europe/Paris", []string{"*-*-* 09:00:00 Europe/Paris"}},
		{"30 4 1,15 * 5", "UTC", []string{"*-*-01,15 04:30:00 UTC", "Fri *-*-* 04:30:00 UTC"}},
		{"0 0 */10 * 1", "", []string{"Mon *-*-01,11,21,31 00:00:00"}},
		{"0 0 * * 5-7", "", []string{"Fri,Sat,Sun *-*-* 00:00:00"}},
		{"0 0 1-31 * 5", "", []string{"*-*-* 00:00:00"}},
		{"0 0 13 * 0-6", "", []string{"*-*-* 00:00:00"}},
		{"@weekly", "", []string{"Sun *-*-* 00:00:00"}},
		{"@yearly", "", []string{"*-01-01 00:00:00"}},
		{"*/30 */12 * 6 *", "", []string{"*-06-* 00,12:00,30:00"}},
		{"0 0 31 2 1", "", []string{"Mon *-02-* 00:00:00"}}, // no line that never elapses
		{"0 0 1-30 4 1", "", []string{"*-04-* 00:00:00"}},
		{"0 0 31 2 *", "", nil},
	}
	for _, test := range tests {
		if got := parse(t, test.expr).OnCalendar(test.zone); !slices.Equal(got, test.lines) {
			t.Errorf("%q in %q:\n got %q\nwant %q", test.expr, test.zone, got, test.lines)
		}
	}
	if got := (cron.Schedule{}).OnCalendar("UTC"); got != nil {
		t.Errorf("the zero schedule: %q", got)
	}
}

func TestOnCalendarOracle(t *testing.T) {
	needOracle(t)
	samples := []struct {
		zone       string
		name       string
		specs, all int
	}{
		{"UTC", "", 240, 1200}, {"UTC", "UTC", 80, 240},
		{"America/New_York", "America/New_York", 20, 80}, {"Australia/Lord_Howe", "Australia/Lord_Howe", 10, 80},
	}
	for i, sample := range samples {
		r := rand.New(rand.NewSource(int64(100 + i)))
		zone := load(t, sample.zone)
		count, compared := testkit.Full(sample.all, sample.specs), 0
		for left := count; left > 0; left -= oracleBatch {
			compared += askOracle(t, r, zone, min(left, oracleBatch), func(s *spec) []string {
				return parse(t, s.text).OnCalendar(sample.name)
			})
		}
		if compared < count*oracleFires/2 {
			t.Errorf("%s: only %d fires were compared", sample.zone, compared)
		}
	}
}

// What systemd never runs has no line, and nothing else has none.
func TestOnCalendarNever(t *testing.T) {
	needOracle(t)
	r := rand.New(rand.NewSource(5))
	var specs []spec
	var lines []string
	for i := range 80 {
		s := randomSpec(r, mix{})
		if i < 60 { // the end of one month
			month, date := 1+i%12, 29+r.Intn(3)
			s = spec{text: fmt.Sprintf("0 0 %d-31 %d *", date, month), star: [5]bool{4: true}}
			for field, ends := range [5][2]int{{0, 0}, {0, 0}, {date, 31}, {month, month}, {0, 6}} {
				s.add(field, ends[0], ends[1], 1)
			}
		}
		specs = append(specs, s)
		lines = append(lines, s.calendars(time.UTC)...)
	}
	elapses := analyze(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), lines)
	for _, s := range specs {
		n := len(s.calendars(time.UTC))
		never := len(slices.Concat(elapses[:n]...)) == 0
		elapses = elapses[n:]
		if got := parse(t, s.text).OnCalendar(""); (got == nil) != never {
			t.Errorf("%q: %q, never is %v", s.text, got, never)
		}
	}
}
