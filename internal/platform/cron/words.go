package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Words says in English when the schedule fires, such as "at 09:00 on Monday to Friday". Schedules that fire at different minutes of the
// calendar have different words. A schedule that never fires has the word "never".
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

// clockWords returns the times of a day in words.
func (s Schedule) clockWords() string {
	const longestList = 6
	hours, clocks := values(s.sets[hourField]), s.clocks()
	step := even(clocks)
	first, last := clocks[0], clocks[len(clocks)-1]
	switch {
	case s.full(minuteField) && len(hours) == 1:
		return "every minute of hour " + strconv.Itoa(hours[0])
	case len(clocks) <= 3 || step == 0 && len(clocks) <= longestList:
		return "at " + spell("and", clocks, clockText)
	case step == 0:
		return s.minuteWords() + " of " + s.hourWords()
	case first+minutesPerDay-last != step: // the distance differs across midnight
		return "every " + span(step) + " from " + clockText(first) + " to " + clockText(last)
	case step == 60:
		return "every hour at minute " + strconv.Itoa(first)
	case step < 60 && first == 0:
		return "every " + span(step)
	}
	return "every " + span(step) + " from " + clockText(first)
}

// clocks returns the matching minutes of a day.
func (s Schedule) clocks() []int {
	var clocks []int
	for at := s.firstClock(0); at < minutesPerDay; at = s.firstClock(at + 1) {
		clocks = append(clocks, at)
	}
	return clocks
}

func (s Schedule) minuteWords() string {
	return s.fieldWords(minuteField, "at minute", func(step int) string { return strconv.Itoa(step) + " minutes from minute" })
}

func (s Schedule) hourWords() string {
	return s.fieldWords(hourField, "hour", func(step int) string { return ordinal(step) + " hour from" })
}

// fieldWords returns the matching values of a field in words. stepped returns the words for many values at equal distances.
func (s Schedule) fieldWords(field int, noun string, stepped func(int) string) string {
	list := values(s.sets[field])
	switch step := even(list); {
	case s.full(field):
		return "every " + fieldAt(field).name
	case step > 1 && len(list) > 3:
		return fmt.Sprintf("every %s %d to %d", stepped(step), list[0], list[len(list)-1])
	case len(list) == 1:
		return noun + " " + strconv.Itoa(list[0])
	}
	return noun + "s " + spell("and", list, strconv.Itoa)
}

// dayWords returns the days of which months in words; "" for every day.
func (s Schedule) dayWords() string {
	day, weekday := s.full(dayField), s.full(weekdayField)
	year := s.full(monthField)
	months := spell("and", values(s.sets[monthField]), monthName)
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
	return "the " + spell("and", dates, ordinal)
}

// weekdayWords lists the weekdays, with an ending on each (Mondays and Fridays) unless some of them form a range (Monday to Friday).
func (s Schedule) weekdayWords(ending, and string) string {
	days := values(sundayLast(s.sets[weekdayField]))
	for i := range days[:max(len(days)-2, 0)] {
		if days[i+2] == days[i]+2 {
			ending = ""
		}
	}
	return spell(and, days, func(n int) string { return weekdayName(n) + ending })
}

// values returns a set as a list in ascending order.
func values(set uint64) []int {
	var list []int
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// even returns the distance between neighbours if all distances are equal, else 0.
func even(list []int) int {
	if len(list) < 2 {
		return 0
	}
	step := list[1] - list[0]
	for i := range list[1:] {
		if list[i+1]-list[i] != step {
			return 0
		}
	}
	return step
}

// spell writes an ascending list as "1, 5 and 7 to 10".
func spell(and string, list []int, name func(int) string) string {
	var items []string
	for len(list) > 0 {
		run := 1
		for run < len(list) && list[run] == list[0]+run {
			run++
		}
		if run > 2 {
			items = append(items, name(list[0])+" to "+name(list[run-1]))
		} else {
			run = 1
			items = append(items, name(list[0]))
		}
		list = list[run:]
	}
	last := len(items) - 1
	if last == 0 {
		return items[0]
	}
	return strings.Join(items[:last], ", ") + " " + and + " " + items[last]
}

// clockText writes a minute of the day as 09:05.
func clockText(minute int) string {
	return fmt.Sprintf("%02d:%02d", minute/60, minute%60)
}

// span writes a number of minutes in words: in hours if they are whole hours.
func span(minutes int) string {
	switch {
	case minutes == 1:
		return "minute"
	case minutes == 60:
		return "hour"
	case minutes < 60:
		return strconv.Itoa(minutes) + " minutes"
	}
	return strconv.Itoa(minutes/60) + " hours"
}

// ordinal writes 1 as 1st.
func ordinal(n int) string {
	suffix := "th"
	if unit := n % 10; n/10 != 1 && 1 <= unit && unit <= 3 {
		suffix = [...]string{"st", "nd", "rd"}[unit-1]
	}
	return strconv.Itoa(n) + suffix
}
