package timeparse

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"pgregory.net/rapid"
)

var zones = []string{
	"UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut", "Asia/Kathmandu",
	"Antarctica/Troll", "America/Scoresbysund", "Africa/Casablanca", "Pacific/Apia", "Pacific/Kiritimati",
}

// A cron line for the same day and time is another implementation of the same rules, as long as now is not inside a
// repeated hour.
func TestAgreesWithCron(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1.3e9, 2.5e9).Draw(t, "now"), 0)
		if rapid.Bool().Draw(t, "near a change") {
			if _, end := now.In(zone).ZoneBounds(); !end.IsZero() && end.After(now) {
				now = end.Add(-time.Duration(rapid.IntRange(1, 50).Draw(t, "hours")) * time.Hour)
			}
		}
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		text, line := fmt.Sprintf("%d:%02d", hour, minute), fmt.Sprintf("%d %d * * *", minute, hour)
		if d := rapid.IntRange(0, 8).Draw(t, "weekday"); d < 7 {
			text, line = time.Weekday(d).String()+" "+text, fmt.Sprintf("%d %d * * %d", minute, hour, d)
		}
		s, err := cron.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := s.Next(now, zone)
		got, err := Parse(text, now, zone)
		if err != nil || !got.Equal(want) {
			if again(got) && got.Before(want) {
				return // the second showing of a time whose first is over: cron skips it
			}
			t.Fatalf("%s, %v: %q is %v, %v, %q fires at %v", zone, now.In(zone), text, got, err, line, want)
		}
	})
}

// again reports whether the clock has shown a time before.
func again(at time.Time) bool {
	for _, back := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if at.Add(-back).Format("2006-01-02 15:04") == at.Format("2006-01-02 15:04") {
			return true
		}
	}
	return false
}

func FuzzEither(f *testing.F) {
	for _, text := range []string{
		"tomorrow 9am", "next monday at 9:15 pm", "feb 29", "March 7, 2026 9am", "7 march 2026 09:00", "2026-03-07T09:00:00.5+01:00",
		"in 1w2d3h4m5s", "1 hour 30 minutes", "99999999999999999999h", "7/3/2026", "\xff\x00", "noon", "9999-12-31T23:59:59-14:00", "next",
	} {
		f.Add(text, int64(1_772_953_199), uint8(1))
	}
	loaded := make([]*time.Location, len(zones))
	for i, name := range zones {
		loaded[i] = load(f, name)
	}
	f.Fuzz(func(t *testing.T, text string, unix int64, n uint8) {
		zone := loaded[int(n)%len(loaded)]
		now := time.Unix(1e9+(unix&0x7fffffff), unix&0xffff)
		at, errTime := Parse(text, now, zone)
		d, errDelay := Delay(text)
		both, errBoth := Either(text, now, zone)
		if errTime == nil && errDelay == nil {
			t.Fatalf("%q is %v and %v", text, at, d)
		}
		if errDelay == nil && (d < time.Second || d > 10*366*24*time.Hour) {
			t.Fatalf("%q is %v", text, d)
		}
		if errTime == nil && (errBoth != nil || !at.Equal(both)) {
			t.Fatalf("%q is %v and %v, %v", text, at, both, errBoth)
		}
		if errBoth != nil {
			checkError(t, text, errBoth)
			return
		}
		if !both.After(now) || both.After(now.AddDate(10, 0, 0)) || both.Nanosecond() != 0 || both.Location() != zone {
			t.Fatalf("%q at %v is %v", text, now, both)
		}
		if again, err := Parse(both.Format(time.RFC3339), now, time.UTC); err != nil || !again.Equal(both) {
			t.Fatalf("%q is %v, which is read as %v, %v", text, both, again, err)
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	var refused *unreadable
	if !errors.As(err, &refused) && !errors.Is(err, errPast) && !errors.Is(err, errFar) {
		t.Fatalf("%q: %v", text, err)
	}
	for _, r := range err.Error() {
		if r < ' ' || len(err.Error()) > 1500 {
			t.Fatalf("%q: %q", text, err)
		}
	}
}
