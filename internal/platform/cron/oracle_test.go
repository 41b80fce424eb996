package cron_test

import (
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// The oracle is systemd's own reader of calendars. It agrees with cron on
// dates and, except on the nights when clocks change, on times.

const (
	oracleBatch = 80 // specs per call of systemd-analyze
	oracleFires = 12 // fires per spec
)

func TestOracle(t *testing.T) {
	needOracle(t)
	samples := []struct {
		zone       string
		specs, all int // eighty cost 15 ms in UTC and 0.6 s in other zones
	}{
		{"UTC", 200, 1600}, {"America/New_York", 10, 80}, {"Europe/London", 0, 80},
		{"Australia/Lord_Howe", 10, 80}, {"Asia/Kathmandu", 0, 80},
	}
	for i, sample := range samples {
		count, compared := testkit.Full(sample.all, sample.specs), 0
		if count == 0 {
			continue
		}
		t.Run(sample.zone, func(t *testing.T) {
			r := rand.New(rand.NewSource(int64(i)))
			zone := load(t, sample.zone)
			for left := count; left > 0; left -= oracleBatch {
				compared += askOracle(t, r, zone, min(left, oracleBatch), func(s *spec) []string { return s.calendars(zone) })
			}
			if compared < count*oracleFires/2 {
				t.Errorf("only %d fires were compared", compared)
			}
			t.Logf("%d expressions, %d fires", count, compared)
		})
	}
}

func needOracle(t *testing.T) {
	t.Helper()
	testkit.Program(t, "systemd-analyze", "systemd")
}

// askOracle compares one batch, written for systemd by a function, and returns
// the number of fires compared.
func askOracle(t *testing.T, r *rand.Rand, zone *time.Location, count int, write func(*spec) []string) int {
	t.Helper()
	base := time.Date(2000+r.Intn(30), 1, 1+r.Intn(365), r.Intn(24), r.Intn(60), r.Intn(60), 0, time.UTC)
	specs := make([]spec, count)
	var calendars []string
	for i := range specs {
		specs[i] = randomSpec(r, mix{})
		calendars = append(calendars, write(&specs[i])...)
	}
	elapses := analyze(t, base, calendars)
	compared := 0
	for _, s := range specs {
		lines := len(write(&s))
		want := slices.Concat(elapses[:lines]...)
		elapses = elapses[lines:]
		slices.SortFunc(want, time.Time.Compare)
		want = slices.CompactFunc(want, time.Time.Equal)
		compared += compareWithOracle(t, s, base, want[:min(len(want), oracleFires)], zone)
	}
	return compared
}

// compareWithOracle leaves out the fires near a change of clocks.
func compareWithOracle(t *testing.T, s spec, base time.Time, want []time.Time, zone *time.Location) int {
	t.Helper()
	end := base.AddDate(30, 0, 0) // systemd looks further than Next
	if len(want) == oracleFires {
		end = want[len(want)-1]
	}
	schedule := parse(t, s.text)
	var got []time.Time
	for at, ok := schedule.Next(base, zone); ok && !at.After(end); at, ok = schedule.Next(at, zone) {
		got = append(got, at)
	}
	odd := func(at time.Time) bool { return at.After(end) || nearChange(at, zone) }
	got, want = slices.DeleteFunc(got, odd), slices.DeleteFunc(want, odd)
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%s: %q (%s) from %v\n got %v\nwant %v", zone, s.text, s.calendars(zone), base, got, want)
	}
	return len(want)
}

func nearChange(at time.Time, zone *time.Location) bool {
	_, before := at.Add(-26 * time.Hour).In(zone).Zone()
	_, after := at.Add(26 * time.Hour).In(zone).Zone()
	return before != after
}

// analyze returns the elapses of each calendar line after base.
func analyze(t *testing.T, base time.Time, calendars []string) [][]time.Time {
	t.Helper()
	args := []string{
		"calendar", fmt.Sprintf("--iterations=%d", oracleFires),
		"--base-time=" + base.Format(time.DateTime) + " UTC", "--",
	}
	cmd := exec.Command("systemd-analyze", append(args, calendars...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var elapses [][]time.Time
	for line := range strings.Lines(string(out)) {
		label, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case label == "Normalized form":
			elapses = append(elapses, nil)
		case label == "Next elapse" && value == "never":
		case label == "Next elapse" || strings.HasPrefix(label, "Iter"):
			at, err := time.Parse("Mon 2006-01-02 15:04:05 MST", value)
			if err != nil {
				t.Fatal(err)
			}
			elapses[len(elapses)-1] = append(elapses[len(elapses)-1], at)
		}
	}
	if len(elapses) != len(calendars) {
		t.Fatalf("%d answers to %d questions:\n%s", len(elapses), len(calendars), out)
	}
	return elapses
}

// calendars writes a spec for systemd: one line, or two where either day field
// is enough, because systemd always wants both.
func (s *spec) calendars(zone *time.Location) []string {
	line := func(dates, weekdays bool) string {
		day, weekday := "*", ""
		if dates {
			day = list(s.set[2][1:32], 1)
		}
		if weekdays {
			weekday = weekdayList(s.set[4])
		}
		return fmt.Sprintf("%s*-%s-%s %s:%s:00 %s", weekday, list(s.set[3][1:13], 1), day,
			list(s.set[1][:24], 0), list(s.set[0][:], 0), zone)
	}
	everyDate := !slices.Contains(s.set[2][1:32], false)
	everyWeekday := !slices.Contains(s.set[4][:7], false)
	switch {
	case s.star[2] || s.star[4]:
		return []string{line(true, true)}
	case everyDate || everyWeekday:
		return []string{line(false, false)}
	}
	return []string{line(true, false), line(false, true)}
}

func list(set []bool, low int) string {
	var items []string
	for i, in := range set {
		if in {
			items = append(items, fmt.Sprintf("%02d", i+low))
		}
	}
	if len(items) == len(set) {
		return "*"
	}
	return strings.Join(items, ",")
}

// weekdayList has Sunday at the end, where systemd wants it.
func weekdayList(set [60]bool) string {
	var items []string
	for i := 1; i <= 7; i++ {
		if set[i%7] {
			items = append(items, time.Weekday(i % 7).String()[:3])
		}
	}
	if len(items) == 7 {
		return ""
	}
	return strings.Join(items, ",") + " "
}
