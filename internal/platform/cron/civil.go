package cron

import (
	"math/bits"
	"time"
)

// Civil minutes and days are counted from 1970-01-01 00:00 on the clock of a
// zone, whatever its offset: plain numbers without gaps.

const (
	minutesPerDay = 24 * 60
	secondsPerDay = 60 * minutesPerDay
)

// firstMinute finds the first civil minute that matches, from first up to but
// not including end.
func (s Schedule) firstMinute(first, end int64) (int64, bool) {
	if first >= end {
		return 0, false
	}
	day := floorDiv(first, minutesPerDay)
	clock := int(first - day*minutesPerDay)
	final := floorDiv(end-1, minutesPerDay)
	for {
		found, ok := s.firstDay(day, final)
		if !ok {
			return 0, false
		}
		if found > day {
			clock = 0
		}
		if at := s.firstClock(clock); at < minutesPerDay {
			minute := found*minutesPerDay + int64(at)
			return minute, minute < end
		}
		day, clock = found+1, 0
	}
}

// lastMinute finds the last civil minute that matches, from first up to but
// not including end.
func (s Schedule) lastMinute(first, end int64) (int64, bool) {
	if first >= end {
		return 0, false
	}
	day := floorDiv(end-1, minutesPerDay)
	clock := int(end - 1 - day*minutesPerDay)
	final := floorDiv(first, minutesPerDay)
	for {
		found, ok := s.lastDay(day, final)
		if !ok {
			return 0, false
		}
		if found < day {
			clock = minutesPerDay - 1
		}
		if at := s.lastClock(clock); at >= 0 {
			minute := found*minutesPerDay + int64(at)
			return minute, minute >= first
		}
		day, clock = found-1, minutesPerDay-1
	}
}

// firstClock finds the first matching minute of a day from clock on; at least
// minutesPerDay if there is none.
func (s Schedule) firstClock(clock int) int {
	hour, minute := clock/60, lowest(s.sets[minuteField], clock%60)
	if s.has(hourField, hour) && minute < 60 {
		return hour*60 + minute
	}
	return lowest(s.sets[hourField], hour+1)*60 + lowest(s.sets[minuteField], 0)
}

// lastClock finds the last matching minute of a day up to clock; negative if
// there is none.
func (s Schedule) lastClock(clock int) int {
	hour, minute := clock/60, highest(s.sets[minuteField], clock%60)
	if s.has(hourField, hour) && minute >= 0 {
		return hour*60 + minute
	}
	return highest(s.sets[hourField], hour-1)*60 + highest(s.sets[minuteField], 59)
}

// firstDay finds the first matching civil day from day to final.
func (s Schedule) firstDay(day, final int64) (int64, bool) {
	year, month, date := dateOf(day)
	for start := day - int64(date) + 1; start <= final; {
		if s.has(monthField, month) {
			if d := lowest(s.dates(year, month, start), date); d <= 31 {
				found := start + int64(d) - 1
				return found, found <= final
			}
		}
		start += int64(daysIn(year, month))
		if date, month = 1, month+1; month > 12 {
			year, month = year+1, 1
		}
	}
	return 0, false
}

// lastDay finds the last matching civil day from day back to final.
func (s Schedule) lastDay(day, final int64) (int64, bool) {
	year, month, date := dateOf(day)
	for start := day - int64(date) + 1; ; start -= int64(daysIn(year, month)) {
		if s.has(monthField, month) {
			if d := highest(s.dates(year, month, start), date); d >= 1 {
				found := start + int64(d) - 1
				return found, found >= final
			}
		}
		if start <= final {
			return 0, false
		}
		if date, month = 31, month-1; month < 1 {
			year, month = year-1, 12
		}
	}
}

// dates is the set of matching days of a month that starts on a civil day.
func (s Schedule) dates(year, month int, start int64) uint64 {
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

// dateOf turns a civil day into a date.
func dateOf(day int64) (year, month, date int) {
	y, m, d := time.Unix(day*secondsPerDay, 0).UTC().Date()
	return y, int(m), d
}

// daysIn is the number of days of a month in the Gregorian calendar.
func daysIn(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// lowest is the lowest element of a set from n on; 64 if there is none.
func lowest(set uint64, n int) int {
	return bits.TrailingZeros64(set >> n << n)
}

// highest is the highest element of a set up to n; -1 if there is none.
func highest(set uint64, n int) int {
	return bits.Len64(set&upTo(n)) - 1
}
