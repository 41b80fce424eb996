package cron

import (
	"fmt"
	"strings"
	"time"
)

// Words says in English when the schedule fires, as "at 09:00 on Monday to
// Friday". The words are complete: schedules that fire at different minutes of
// the calendar have different words. They are "never" if it never fires.
func (s Schedule) Words() string {
	if s.Never() {
		return "never"
	}
	s = s.realDates()
	clock, days := s.clockWords(), s.dayWords()
	if s.full(dayField) && s.full(weekdayField) && !s.full(hourField) && strings.HasPrefix(clock, "at ") {
		clock += " every day"
	}
	return strings.TrimSuffix(clock+" "+days, " ")
}

// clockWords says at which times of a day.
func (s Schedule) clockWords() string {
	const longestList = 6
	hours, clocks := values(s.sets[hourField]), s.clocks()
	step := even(clocks)
	first, last := clocks[0], clocks[len(clocks)-1]
	switch {
	case s.full(minuteField) && len(hours) == 1:
		return "every minute of hour " + decimal(hours[0])
	case len(clocks) <= 3 || step == 0 && len(clocks) <= longestList:
		return "at " + spell(clocks, clockText)
	case step == 0:
		return s.minuteWords() + " of " + s.hourWords()
	case first+minutesPerDay-last != step: // it starts again at midnight
		return "every " + span(step) + " from " + clockText(first) + " to " + clockText(last)
	case step == 60:
		return "every hour at minute " + decimal(first)
	case step < 60 && first == 0:
		return "every " + span(step)
	}
	return "every " + span(step) + " from " + clockText(first)
}

// clocks lists the matching minutes of a day.
func (s Schedule) clocks() []int {
	var clocks []int
	for at := s.firstClock(0); at < minutesPerDay; at = s.firstClock(at + 1) {
		clocks = append(clocks, at)
	}
	return clocks
}

func (s Schedule) minuteWords() string {
	minutes := values(s.sets[minuteField])
	switch step := even(minutes); {
	case s.full(minuteField):
		return "every minute"
	case step > 1 && len(minutes) > 3:
		return fmt.Sprintf("every %d minutes from minute %d to %d", step, minutes[0], minutes[len(minutes)-1])
	case len(minutes) == 1:
		return "at minute " + decimal(minutes[0])
	}
	return "at minutes " + spell(minutes, decimal)
}

func (s Schedule) hourWords() string {
	hours := values(s.sets[hourField])
	switch step := even(hours); {
	case s.full(hourField):
		return "every hour"
	case step > 1 && len(hours) > 3:
		return fmt.Sprintf("every %s hour from %d to %d", ordinal(step), hours[0], hours[len(hours)-1])
	case len(hours) == 1:
		return "hour " + decimal(hours[0])
	}
	return "hours " + spell(hours, decimal)
}

// dayWords says on which days of which months; it is empty for every day.
func (s Schedule) dayWords() string {
	day, weekday := s.full(dayField), s.full(weekdayField)
	year := s.full(monthField)
	months := spell(values(s.sets[monthField]), func(n int) string { return time.Month(n).String() })
	of := " of " + months
	if year {
		of = " of the month"
	}
	var words string
	switch {
	case day && weekday && year:
		return ""
	case day && weekday:
		return "in " + months
	case day:
		words = "on " + s.weekdayWords("s", "and")
	case weekday:
		return "on " + s.dateWords() + of
	case s.bothDays():
		return "on " + s.dateWords() + of + " when that is a " + s.weekdayWords("", "or")
	case year:
		return "on " + s.dateWords() + of + " and on " + s.weekdayWords("s", "and")
	default:
		words = "on " + s.dateWords() + " and on " + s.weekdayWords("s", "and") + ","
	}
	if year {
		return words
	}
	return words + " in " + months
}

func (s Schedule) dateWords() string {
	dates := values(s.sets[dayField])
	if step := even(dates); step > 1 && len(dates) > 3 {
		return fmt.Sprintf("every %s day from the %s to the %s", ordinal(step), ordinal(dates[0]), ordinal(dates[len(dates)-1]))
	}
	return "the " + spell(dates, ordinal)
}

// weekdayWords lists the weekdays, with an ending on each (Mondays and
// Fridays) unless some are a range (Monday to Friday).
func (s Schedule) weekdayWords(ending, and string) string {
	days := values(sundayLast(s.sets[weekdayField]))
	for i := range days[:max(len(days)-2, 0)] {
		if days[i+2] == days[i]+2 {
			ending = ""
		}
	}
	return spellWith(and, days, func(n int) string { return time.Weekday(n%7).String() + ending })
}
