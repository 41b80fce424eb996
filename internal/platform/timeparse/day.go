package timeparse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A day is a date, represented by its midnight in UTC. Changes of clocks do not affect it.

// leap is the longest period, in years, from one 29 February to the next.
const leap = 8

// readDays parses the day at the beginning of the words. It returns the dates that the day can be, in order, and the remaining words. It
// returns no dates and no error if the words do not begin with a day.
func readDays(w []string, today time.Time) (days []time.Time, rest []string, err error) {
	ahead, rest := 0, w
	if w[0] == "next" && len(w) > 1 {
		ahead, rest = 1, w[1:]
	}
	d, isWeekday := named(rest[0], time.Sunday, time.Saturday)
	switch {
	case isWeekday:
		return weekdays(d, today, ahead), rest[1:], nil
	case w[0] == "today":
		return []time.Time{today}, w[1:], nil
	case w[0] == "tomorrow":
		return []time.Time{today.AddDate(0, 0, 1)}, w[1:], nil
	case isISO(w[0]):
		d, err := time.Parse(time.DateOnly, w[0])
		if err != nil {
			err = wrong("no such date")
		}
		return []time.Time{d}, w[1:], err
	}
	return readNamed(w, today)
}

// weekdays returns the dates, from so many days ahead to seven, that fall on a day of the week.
func weekdays(d time.Weekday, today time.Time, from int) (days []time.Time) {
	for i := from; i <= 7; i++ {
		if t := today.AddDate(0, 0, i); t.Weekday() == d {
			days = append(days, t)
		}
	}
	return days
}

// readNamed parses "march 7" and "7 march", with or without a year after it. A comma may precede the year.
func readNamed(w []string, today time.Time) (days []time.Time, rest []string, err error) {
	if len(w) < 2 {
		return nil, w, nil
	}
	first, second, rest := w[0], w[1], w[2:]
	from, to := today.Year(), today.Year()+leap
	if len(rest) > 0 && isNumber(rest[0], 4, 4) {
		from, _ = strconv.Atoi(rest[0])
		to, rest = from, rest[1:]
		second = strings.TrimSuffix(second, ",")
	}
	month, ok := named(first, time.January, time.December)
	if !ok {
		month, ok = named(second, time.January, time.December)
		second = first
	}
	date, okDate := number(second, 1, 31)
	if !ok || !okDate {
		return nil, w, nil
	}
	for year := from; year <= to; year++ {
		if d := time.Date(year, month, date, 0, 0, 0, 0, time.UTC); d.Day() == date { // 30 February and the like are skipped
			days = append(days, d)
		}
	}
	if len(days) == 0 {
		return nil, w, wrong("no such date")
	}
	return days, rest, nil
}

// splitISO splits a word in which a T joins a date and a time of day.
func splitISO(w []string) []string {
	const date = len("2026-03-07")
	if len(w[0]) > date && w[0][date] == 't' && isISO(w[0][:date]) {
		return slices.Concat([]string{w[0][:date], w[0][date+1:]}, w[1:])
	}
	return w
}

// readInstant parses a date and a time of day with an offset, if the words are that. The largest offset is 14 hours.
func readInstant(w []string) (at time.Time, ok bool) {
	if len(w) != 2 || !isISO(w[0]) {
		return time.Time{}, false
	}
	at, floating, ok := ISO(strings.ToUpper(w[0] + "T" + w[1]))
	return at.Truncate(time.Second), ok && !floating && max(offset(at), -offset(at)) <= 14*3600
}

func isISO(s string) bool {
	const form = "2026-03-07"
	return len(s) == len(form) && s[4] == '-' && s[7] == '-' && isNumber(s[:4]+s[5:7]+s[8:], 8, 8)
}

// named returns the weekday or month, from first to last, that a text names in full or by its first three letters.
func named[T interface {
	~int
	fmt.Stringer
}](s string, first, last T) (T, bool) {
	for v := first; v <= last; v++ {
		if name := strings.ToLower(v.String()); s == name || s == name[:3] {
			return v, true
		}
	}
	return 0, false
}
