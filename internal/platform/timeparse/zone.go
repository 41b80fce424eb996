package timeparse

import (
	"sort"
	"strings"
	"time"
)

// firstAhead returns the first instant after now at which the clock of now's zone shows a time of day on one of the days. If there is
// none, it returns the last instant that it tried.
func firstAhead(days []time.Time, seconds int, now time.Time) (at time.Time) {
	for _, d := range days {
		for _, at = range instants(d.Add(time.Duration(seconds)*time.Second), now.Location()) {
			if at.After(now) {
				return at
			}
		}
	}
	return at
}

// Shown returns the instant at which the clock of a zone shows a civil time. civil is given in UTC and in whole seconds. Of two showings
// it returns the first; for a skipped time it returns the first instant after the gap.
func Shown(civil time.Time, zone *time.Location) time.Time { return instants(civil, zone)[0] }

// instants returns the instants at which the clock of a zone shows a civil time, given in UTC: one, or two in an overlap, the earlier one
// first. For a skipped time it returns the first instant after the gap. The list may have an instant twice.
func instants(civil time.Time, zone *time.Location) []time.Time {
	const reach = 16 * time.Hour // more than any offset, and short enough that clocks change at most once within it
	from, to := civil.Add(-reach).In(zone), civil.Add(reach).In(zone)
	before, after := offset(from), offset(to)
	var found []time.Time
	for _, o := range []int{before, after} {
		at := civil.Add(-time.Duration(o) * time.Second).In(zone)
		if offset(at) == o {
			found = append(found, at)
		}
	}
	if len(found) > 0 {
		return found
	}
	changed := sort.Search(int(to.Sub(from)/time.Second), func(i int) bool {
		return offset(from.Add(time.Duration(i)*time.Second)) != before
	})
	return []time.Time{from.Add(time.Duration(changed) * time.Second)}
}

// offset returns how far east of UTC the zone of an instant is, in seconds.
func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

// ISO parses a time in ISO 8601, with a T or a space, and with or without seconds, a fraction and an offset. A time without an offset is
// floating: at then has its digits in UTC.
func ISO(text string) (at time.Time, floating, ok bool) {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
	} {
		// time.Parse accepts :60 as the minutes of an offset
		if at, err := time.Parse(layout, text); err == nil && !strings.HasSuffix(text, ":60") {
			return at, !strings.Contains(layout, "Z"), true
		}
	}
	return time.Time{}, false, false
}
