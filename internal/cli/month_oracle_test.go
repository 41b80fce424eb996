package cli

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// monthCron is a cron expression as the oracle of the month reads it: by trying every minute. It shares nothing with package cron but the
// rule that ollim-routine(5) documents.
type monthCron struct {
	fields [5]map[int]bool
	stars  [5]bool
	zone   *time.Location
}

func parseMonthCron(t *testing.T, text, zone string) monthCron {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	switch text {
	case "@hourly":
		text = "0 * * * *"
	case "@weekly":
		text = "0 0 * * 0"
	case "@monthly":
		text = "0 0 1 * *"
	}
	c := monthCron{zone: location}
	low, high := [5]int{0, 0, 1, 1, 0}, [5]int{59, 23, 31, 12, 6}
	words := strings.Fields(text)
	if len(words) != 5 {
		t.Fatal(text)
	}
	for i, word := range words {
		c.fields[i], c.stars[i] = map[int]bool{}, word[0] == '*'
		for item := range strings.SplitSeq(word, ",") {
			span, step, _ := strings.Cut(item, "/")
			from, to, isRange := strings.Cut(span, "-")
			first, last, by := low[i], high[i], 1
			if span != "*" {
				first = monthNumber(t, from)
				if last = first; isRange {
					last = monthNumber(t, to)
				}
			}
			if step != "" {
				by = monthNumber(t, step)
			}
			for n := first; n <= last; n += by {
				c.fields[i][n] = true
			}
		}
	}
	return c
}

func monthNumber(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// shows reports whether a reading of the clock on the wall matches.
func (c monthCron) shows(wall time.Time) bool {
	day, weekday := c.fields[2][wall.Day()], c.fields[4][int(wall.Weekday())]
	both := c.stars[2] || c.stars[4]
	return c.fields[0][wall.Minute()] && c.fields[1][wall.Hour()] && c.fields[3][int(wall.Month())] &&
		(both && day && weekday || !both && (day || weekday))
}

// fires reports whether an instant, a whole minute, is a slot. A schedule with a star in minute or hour follows real minutes. Another one
// fires at the first showing of a time only, and once after a gap for all that the clock skipped.
func (c monthCron) fires(at time.Time) bool {
	wall := at.In(c.zone)
	if c.stars[0] || c.stars[1] {
		return c.shows(wall)
	}
	const clock = "2006-01-02 15:04"
	for back := 30 * time.Minute; back <= 2*time.Hour; back += 30 * time.Minute {
		if at.Add(-back).In(c.zone).Format(clock) == wall.Format(clock) {
			return false
		}
	}
	if c.shows(wall) {
		return true
	}
	_, now := wall.Zone()
	_, before := at.Add(-time.Minute).In(c.zone).Zone()
	for skipped := 1; skipped <= (now-before)/60; skipped++ { // readings that the clock never showed
		reading := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute()-skipped, 0, 0, time.UTC)
		if c.shows(reading) {
			return true
		}
	}
	return false
}

// The oracle itself, by nights that were looked up.
func TestMonthOracle(t *testing.T) {
	t.Parallel()
	const berlin, newYork = "Europe/Berlin", "America/New_York"
	for _, tc := range []struct{ cron, zone, from, want string }{
		{"30 2 * * *", berlin, "2026-10-25T00:00:00Z", "00:30"},          // shown twice, the first
		{"30 2 * * *", berlin, "2027-03-28T00:00:00Z", "01:00"},          // skipped
		{"30 1,2 * * *", newYork, "2026-11-01T05:00:00Z", "05:30 07:30"}, // 1:30 twice
		{"30 1,2 * * *", newYork, "2027-03-14T06:00:00Z", "06:30 07:00"}, // 2:30 skipped
		{"*/30 * * * *", berlin, "2027-03-28T00:00:00Z", "00:00 00:30 01:00 01:30 02:00 02:30"},
		{"0 0 1 * 5", berlin, "2026-10-01T20:00:00Z", "22:00"}, // one of two days
	} {
		from, err := time.Parse(time.RFC3339, tc.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		c := parseMonthCron(t, tc.cron, tc.zone)
		for at := from; at.Before(from.Add(3 * time.Hour)); at = at.Add(time.Minute) {
			if c.fires(at) {
				got = append(got, at.UTC().Format("15:04"))
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s in %s: %v, want %s", tc.cron, tc.zone, got, tc.want)
		}
	}
}
