package cron

import (
	"math"
	"time"
)

// stretch is a period in which a zone has one UTC offset. Two adjacent stretches may have the same offset.
type stretch struct {
	start, end int64 // Unix seconds; start is part of the stretch, end is not
	offset     int64 // seconds east of UTC
	before     int64 // offset before start; equal to offset if there is no earlier one
}

// stretchAt returns the stretch that contains an instant.
func stretchAt(unix int64, zone *time.Location) stretch {
	st := rawStretch(unix, zone)
	// Past the last recorded change, Go derives the start from the zone's yearly rule and may place it before that change
	// (Metlakatla 2019 in the compact form of the database). Walk up to the true start.
	for st.start != math.MinInt64 {
		end := rawStretch(st.start, zone).end
		if end > unix {
			break
		}
		st.start = end
	}
	st.before = st.offset
	if st.start != math.MinInt64 {
		st.before = rawStretch(st.start-1, zone).offset
	}
	return st
}

// following returns the stretch after st. It must not be called if st has no end.
func (st stretch) following(zone *time.Location) stretch {
	next := rawStretch(st.end, zone)
	next.start, next.before = st.end, st.offset
	return next
}

// rawStretch returns what the zone reports for an instant. offset and end are correct; start may be too early, and before is not set.
func rawStretch(unix int64, zone *time.Location) stretch {
	t := time.Unix(unix, 0).In(zone)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	st := stretch{start: math.MinInt64, end: math.MaxInt64, offset: int64(offset)}
	if !start.IsZero() {
		st.start = start.Unix()
	}
	if !end.IsZero() {
		st.end = end.Unix()
	}
	if st.end <= unix {
		// ZoneBounds takes every year of a yearly rule to have 365 days, so on 31 December of a leap year the returned end has already
		// passed. The rule is valid until the year ends in UTC.
		year := t.UTC().Year()
		st.end = time.Date(year+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return st
}

// gap returns the civil minutes that were skipped at the start of st, from first up to but not including end, and the first civil minute
// after them. The range is empty if nothing was skipped.
func (st stretch) gap() (first, end int64) {
	if st.before >= st.offset {
		return 0, 0
	}
	return minuteUp(st.start + st.before), minuteUp(st.start + st.offset)
}

// civil returns the minutes that the clock shows in st between two Unix seconds, both included: from first up to but not including end.
// With fixed it omits minutes that the clock has shown before.
func (st stretch) civil(low, high int64, fixed bool) (first, end int64) {
	low, high = max(low, st.start), min(high, st.end-1)
	first, end = low+st.offset, high+st.offset+1
	if fixed && st.before > st.offset {
		first = max(first, st.start+st.before)
	}
	return minuteUp(first), minuteUp(end)
}

// instant returns the Unix second at which the clock shows a civil minute.
func (st stretch) instant(minute int64) int64 {
	return minute*60 - st.offset
}

// minuteUp converts civil seconds to minutes and rounds up.
func minuteUp(seconds int64) int64 {
	return -floorDiv(-seconds, 60)
}

// floorDiv divides by a positive divisor and rounds down.
func floorDiv(a, b int64) int64 {
	quotient := a / b
	if a%b < 0 {
		quotient--
	}
	return quotient
}
