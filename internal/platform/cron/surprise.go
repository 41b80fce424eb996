package cron

import (
	"fmt"
	"math/bits"
	"time"
)

// Surprises says what about the schedule people often do not expect: short
// sentences in lower case, without a full stop; none for most schedules.
func (s Schedule) Surprises() []string {
	if s == (Schedule{}) {
		return nil
	}
	var all []string
	for _, surprise := range []string{s.everyMinute(), s.unevenMinutes(), s.unevenHours(), s.dayRule(), s.unevenDates(), s.missingDates()} {
		if surprise != "" {
			all = append(all, surprise)
		}
	}
	return all
}

// everyMinute is about * 9 * * * for 0 9 * * *, and * * 1 * * for 0 0 1 * *.
func (s Schedule) everyMinute() string {
	hours := bits.OnesCount64(s.sets[hourField])
	switch {
	case !s.stars[minuteField] || !s.full(minuteField):
		return ""
	case hours < 24:
		return fmt.Sprintf("fires every minute of %s: %d times a day", s.hourWords(), hours*60)
	case s.full(dayField) && s.full(weekdayField):
		return ""
	}
	return fmt.Sprintf("fires every minute of the day: %d times a day", minutesPerDay)
}

func (s Schedule) unevenMinutes() string {
	step, last := s.uneven(minuteField)
	if step == 0 || bits.OnesCount64(s.sets[hourField]) == 1 {
		return ""
	}
	return fmt.Sprintf("*/%d starts again at each full hour: minute %d is followed by minute 0", step, last)
}

func (s Schedule) unevenHours() string {
	step, last := s.uneven(hourField)
	if step == 0 {
		return ""
	}
	return fmt.Sprintf("*/%d starts again at midnight: hour %d is followed by hour 0", step, last)
}

// uneven returns the step and the last value of the minute or hour field if it
// is written as a step, from 0 therefore, that does not fit; else 0.
func (s Schedule) uneven(field int) (step, last int) {
	list := values(s.sets[field])
	step, count := even(list), fieldAt(field).count()
	if !s.stars[field] || step == 0 || list[len(list)-1]+step <= count {
		return 0, 0
	}
	return step, list[len(list)-1]
}

// dayRule is about the two day fields, which are alternatives unless one of
// them starts with *.
func (s Schedule) dayRule() string {
	if s.Never() {
		return ""
	}
	s = s.realDates()
	if s.meetingDays() {
		return "fires only on dates that match both day fields, because one of them starts with *"
	}
	if s.bothDays() {
		return ""
	}
	dates, weekdays, both := s.dateWords(), s.weekdayWords("s", "and"), "days that are both"
	if name := s.weekdayWords("", "and"); bits.OnesCount64(s.sets[weekdayField]) == 1 {
		weekdays = "every " + name
		if bits.OnesCount64(s.sets[dayField]) == 1 {
			both = name + " " + dates
		}
	}
	return "fires on " + dates + " and on " + weekdays + ", not only on " + both
}

// unevenDates is about */2, which is not every other day.
func (s Schedule) unevenDates() string {
	if !s.steppedDates() || !s.full(weekdayField) || bits.OnesCount64(s.sets[monthField]) == 1 {
		return "" // the weekdays, or the one month, say enough
	}
	step := even(values(s.sets[dayField]))
	return "every " + ordinal(step) + " day starts again on the 1st of each month: the last step of a month may be shorter"
}

// steppedDates reports whether the dates are those of a step from the 1st that
// makes three of them at least; the field's star may be gone.
func (s Schedule) steppedDates() bool {
	dates := values(s.sets[dayField])
	step := even(dates)
	return step > 1 && len(dates) > 2 && dates[0] == 1 && dates[len(dates)-1]+step > 31
}

// missingDates is about dates at the end of a month that some months do not
// have, such as the 31st. One that continues a range is meant as its end.
func (s Schedule) missingDates() string {
	if s.full(dayField) || s.steppedDates() {
		return ""
	}
	date := highest(s.sets[dayField], 31)
	for s.has(dayField, date-1) {
		date--
	}
	var without []int
	for month := 1; month <= 12; month++ {
		if s.has(monthField, month) && daysIn(2000, month) < date {
			without = append(without, month)
		}
	}
	switch have := "have"; {
	case len(without) == 0 && date == 29 && s.has(monthField, 2):
		return "the 29th of February exists only in leap years"
	case len(without) == 0:
		return ""
	case s.full(monthField) && date == 31:
		return "the 31st exists in 7 months"
	default:
		if len(without) == 1 {
			have = "has"
		}
		return spell(without, func(n int) string { return time.Month(n).String() }) + " " + have + " no " + ordinal(date)
	}
}
