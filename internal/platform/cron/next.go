package cron

import (
	"iter"
	"math/bits"
	"time"
)

// horizon is how far Next and Prev search, in seconds: 30 years of 365.25 days. Only one kind of date is rarer: 29 February on a given
// weekday, which can be 40 years away when a century year is not a leap year.
const horizon = 30 * 31_557_600

// Next returns the first fire strictly after an instant, in the zone. ok is false if there is none within 30 years. Next panics if zone
// is nil.
func (s Schedule) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	from := after.Unix() // fires are whole seconds
	return s.first(from+1, from+horizon, zone)
}

// Prev returns the latest fire at or before an instant, in the zone. ok is false if there is none within 30 years. Prev panics if zone is
// nil.
func (s Schedule) Prev(at time.Time, zone *time.Location) (time.Time, bool) {
	to := at.Unix()
	return s.last(to-horizon, to, zone)
}

// Between yields every fire after from and not after to, in ascending order and in the zone. The distance of the two is not limited.
// Between panics if zone is nil.
func (s Schedule) Between(from, to time.Time, zone *time.Location) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		last := to.Unix()
		fire, ok := s.first(from.Unix()+1, last, zone)
		for ok && yield(fire) {
			fire, ok = s.first(fire.Unix()+1, last, zone)
		}
	}
}

// PerYear counts the fires of a year of the Gregorian calendar in UTC. In other zones there may be a few more or fewer, because clocks
// change.
func (s Schedule) PerYear(year int) int {
	days := 0
	start := floorDiv(time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC).Unix(), secondsPerDay)
	for month := 1; month <= 12; month++ {
		days += bits.OnesCount64(s.dates(year, month, start))
		start += int64(daysIn(year, month))
	}
	return days * bits.OnesCount64(s.sets[hourField]) * bits.OnesCount64(s.sets[minuteField])
}

// first returns the first fire between two Unix seconds, both included.
func (s Schedule) first(from, to int64, zone *time.Location) (time.Time, bool) {
	if from > to {
		return time.Time{}, false
	}
	for st := stretchAt(from, zone); ; st = st.following(zone) {
		if fire, ok := s.afterGap(st); ok && from <= fire && fire <= to {
			return time.Unix(fire, 0).In(zone), true // no other minute of this stretch is earlier
		}
		first, end := st.civil(from, to, !s.Wild())
		if minute, ok := s.firstMinute(first, end); ok {
			return time.Unix(st.instant(minute), 0).In(zone), true
		}
		if st.end > to {
			return time.Time{}, false
		}
	}
}

// last returns the last fire between two Unix seconds, both included.
func (s Schedule) last(from, to int64, zone *time.Location) (time.Time, bool) {
	for st := stretchAt(to, zone); ; st = stretchAt(st.start-1, zone) {
		first, end := st.civil(from, to, !s.Wild())
		if minute, ok := s.lastMinute(first, end); ok {
			return time.Unix(st.instant(minute), 0).In(zone), true
		}
		if fire, ok := s.afterGap(st); ok && from <= fire && fire <= to {
			return time.Unix(fire, 0).In(zone), true
		}
		if st.start <= from {
			return time.Time{}, false
		}
	}
}

// afterGap returns the fire of a fixed schedule that stands for times skipped at the start of a stretch, if the schedule has any of them.
func (s Schedule) afterGap(st stretch) (int64, bool) {
	if s.Wild() {
		return 0, false
	}
	first, end := st.gap()
	if _, ok := s.firstMinute(first, end); !ok {
		return 0, false
	}
	fire := st.instant(end)
	return fire, fire < st.end
}
