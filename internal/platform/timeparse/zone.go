package timeparse

import (
	"sort"
	"strings"
	"time"
)

// firstAhead is the first instant after now at which the clock of now's zone shows a time of day on one of the days; when
// there is none, the last instant that was considered.
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

// Shown is the instant at which the clock of a zone shows a civil time, given as if it were UTC and in whole seconds: the first
// showing of two, the first instant after the gap for one that is skipped.
func Shown(civil time.Time, zone *time.Location) time.Time { return instants(civil, zone)[0] }

// instants are those at which the clock of a zone shows a civil time, given as if it were UTC: one, or two in an overlap,
// the earlier one first. A time inside a gap is the first instant after it. An instant may stand there twice.
func instants(civil time.Time, zone *time.Location) []time.Time {
	const reach = 16 * time.Hour // more than any offset, so that the clocks change at most once in between
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

// offset is how far east of UTC the zone is at an instant, in seconds.
func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

// ISO reads a time in ISO 8601, with a T or a space, with or without seconds, a fraction and an offset. One without an offset
// is floating: at has its digits in UTC.
func ISO(text string) (at time.Time, floating, ok bool) {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
	} {
		if at, err := time.Parse(layout, text); err == nil && !strings.HasSuffix(text, ":60") { // which it takes for an offset's minutes
			return at, !strings.Contains(layout, "Z"), true
		}
	}
	return time.Time{}, false, false
}
