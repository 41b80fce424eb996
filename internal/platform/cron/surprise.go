package cron

import (
	"fmt"
	"math/bits"
	"slices"
)

// Surprises returns what people often do not expect of the schedule: short sentences in lower case, without a full stop. Most schedules
// have none.
func (s Schedule) Surprises() []string {
	if s == (Schedule{}) {
		return nil
	}
	all := []string{
		s.everyMinute(), s.unevenSteps(minuteField, "each full hour"), s.unevenSteps(hourField, "midnight"),
		s.dayRule(), s.unevenDates(), s.missingDates(),
	}
	return slices.DeleteFunc(all, func(surprise string) bool { return surprise == "" })
}

// everyMinute warns about * 9 * * * where 0 9 * * * may be meant, and about * * 1 * * where 0 0 1 * * may be.
func (s Schedule) everyMinute() string {
	hours := bits.OnesCount64(s.sets[hourField])
	switch {
	case !s.stars[minuteField] || !s.full(minuteField) || s.Never():
		return ""
	case hours < 24:
		return fmt.Sprintf("fires every minute of %s: %d times a day", s.hourWords(), hours*60)
	case s.full(dayField) && s.full(weekdayField):
		return ""
	}
	return fmt.Sprintf("fires every minute of the day: %d times a day", minutesPerDay)
}

// unevenSteps warns about a step in a minute or hour field that does not divide the hour or day evenly.
func (s Schedule) unevenSteps(field int, begin string) string {
	list, f := values(s.sets[field]), fieldAt(field)
	step, last := even(list), list[len(list)-1]
	fits := !s.stars[field] || step == 0 || last+step <= f.count()
	if fits || field == minuteField && bits.OnesCount64(s.sets[hourField]) == 1 {
		return ""
	}
	return fmt.Sprintf("*/%d starts again at %s: %s %d is followed by %s 0", step, begin, f.name, last, f.name)
}

// dayRule warns about two day fields: they are alternatives unless one of them starts with *.
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

// unevenDates warns about */2 in day-of-month, which is not every other day.
func (s Schedule) unevenDates() string {
	if !s.steppedDates() || !s.full(weekdayField) || bits.OnesCount64(s.sets[monthField]) == 1 {
		return "" // weekdays, or a single month, show that other dates are left out
	}
	step := even(values(s.sets[dayField]))
	return "every " + ordinal(step) + " day starts again on the 1st of each month: the last step of a month may be shorter"
}

// steppedDates reports whether the dates are at least three with equal steps from the 1st. The field need not start with * any more.
func (s Schedule) steppedDates() bool {
	dates := values(s.sets[dayField])
	step := even(dates)
	return step > 1 && len(dates) > 2 && dates[0] == 1 && dates[len(dates)-1]+step > 31
}

// missingDates warns about dates that some months do not have, such as the 31st. It does not warn about one that continues a range, which
// is meant as the end of the month.
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
		return spell("and", without, monthName) + " " + have + " no " + ordinal(date)
	}
}
