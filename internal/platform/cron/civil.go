package cron

import (
	"math/bits"
	"time"
)

// Civil minutes and days are numbered without gaps from 1970-01-01 00:00 on the clock of a zone, whatever the zone's offset is.

const (
	minutesPerDay = 24 * 60
	secondsPerDay = 60 * minutesPerDay
)

// firstMinute returns the first matching civil minute from first up to but not including end, and reports whether there is one.
func (s Schedule) firstMinute(first, end int64) (int64, bool) {
	for first < end {
		day := floorDiv(first, minutesPerDay)
		date, days, dates := s.month(day)
		found := lowest(dates, date)
		if found == date {
			if at := s.firstClock(int(first - day*minutesPerDay)); at < minutesPerDay {
				first = day*minutesPerDay + int64(at)
				return first, first < end
			}
			found = lowest(dates, date+1)
		}
		first = (day + int64(min(found, days+1)-date)) * minutesPerDay
	}
	return 0, false
}

// lastMinute returns the last matching civil minute from first up to but not including end, and reports whether there is one.
func (s Schedule) lastMinute(first, end int64) (int64, bool) {
	for first < end {
		day := floorDiv(end-1, minutesPerDay)
		date, _, dates := s.month(day)
		found := highest(dates, date)
		if found == date {
			if at := s.lastClock(int(end - 1 - day*minutesPerDay)); at >= 0 {
				last := day*minutesPerDay + int64(at)
				return last, last >= first
			}
			found = highest(dates, date-1)
		}
		end = (day + int64(max(found, 0)-date) + 1) * minutesPerDay
	}
	return 0, false
}

// firstClock returns the first matching minute of a day from clock on; at least minutesPerDay if there is none.
func (s Schedule) firstClock(clock int) int {
	hour, minute := clock/60, lowest(s.sets[minuteField], clock%60)
	if s.has(hourField, hour) && minute < 60 {
		return hour*60 + minute
	}
	return lowest(s.sets[hourField], hour+1)*60 + lowest(s.sets[minuteField], 0)
}

// lastClock returns the last matching minute of a day up to clock; negative if there is none.
func (s Schedule) lastClock(clock int) int {
	hour, minute := clock/60, highest(s.sets[minuteField], clock%60)
	if s.has(hourField, hour) && minute >= 0 {
		return hour*60 + minute
	}
	return highest(s.sets[hourField], hour-1)*60 + highest(s.sets[minuteField], 59)
}

// month returns the date of a civil day, the number of days of its month, and those that match.
func (s Schedule) month(day int64) (date, days int, dates uint64) {
	year, month, date := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return date, daysIn(year, int(month)), s.dates(year, int(month), day-int64(date)+1)
}

// dates returns the set of matching days of a month that starts on a civil day.
func (s Schedule) dates(year, month int, start int64) uint64 {
	if !s.has(monthField, month) {
		return 0
	}
	const weeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	weekday := start + 4 // day 0 was a Thursday
	weekday -= 7 * floorDiv(weekday, 7)
	byWeekday := s.sets[weekdayField] * weeks >> weekday << 1
	byDate := s.sets[dayField]
	dates := byDate | byWeekday
	if s.bothDays() {
		dates = byDate & byWeekday
	}
	return dates & upTo(daysIn(year, month))
}

// daysIn returns the number of days of a month in the Gregorian calendar.
func daysIn(year, month int) int {
	switch {
	case month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0):
		return 29
	case month == 2:
		return 28
	}
	return 30 + (month+month/8)%2
}

// lowest returns the lowest element of a set from n on; 64 if there is none.
func lowest(set uint64, n int) int {
	return bits.TrailingZeros64(set >> n << n)
}

// highest returns the highest element of a set up to n; -1 if there is none.
func highest(set uint64, n int) int {
	return bits.Len64(set&upTo(n)) - 1
}
