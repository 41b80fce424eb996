// Package cron implements cron expressions: it parses one, writes it in normal form, for a crontab, for systemd and in words,
// and computes the instants at which it fires.
//
// The semantics are those of Debian's cron, but the grammar is stricter. Minute 0-59, hour 0-23, day-of-month 1-31, month 1-12 or
// jan-dec, day-of-week 0-7 or sun-sat (0 and 7 are Sunday), each a list of values, ranges and *, with steps on ranges and on *;
// or one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. Expressions that cron accepts and then ignores or
// never fires (reversed ranges, steps on a single number, trailing text) are errors here, and the error gives the position.
//
// The two day fields are alternatives: a date matches if either does. Only if one of them starts with * must a date match both.
//
// A fire is an instant at which the clock of the given zone shows a whole
// minute that matches, with two additions for the nights when clocks change:
//
//   - A schedule whose minute or hour field starts with * is wild. It follows
//     real minutes: a time that the clock skips is skipped, a time that the
//     clock shows twice fires twice.
//   - Any other schedule keeps to the clock on the wall. If one or more of its
//     times are skipped, it fires once, at the first whole minute after the
//     gap. A time that the clock shows twice fires at its first showing only.
//
// The package does no I/O and never asks for the time or the local zone.
package cron

import (
	"strconv"
	"strings"
)

// Schedule is a parsed cron expression, an immutable value that may be used from several goroutines. Two schedules are equal (==)
// if their normal forms are. The zero Schedule never fires.
type Schedule struct {
	sets  [fieldCount]uint64 // bit n: the value n matches; Sunday is 0 only
	stars [fieldCount]bool   // the field starts with *, set only where that changes the meaning
}

// Indexes of the fields in an expression and in a Schedule.
const (
	minuteField = iota
	hourField
	dayField
	monthField
	weekdayField
	fieldCount
)

// Wild reports whether the minute or the hour field starts with *, so that the schedule follows real minutes when clocks change.
func (s Schedule) Wild() bool {
	return s.stars[minuteField] || s.stars[hourField]
}

// Never reports whether no date in any year matches, as with 31 February.
func (s Schedule) Never() bool {
	if !s.bothDays() {
		return s == Schedule{} // unless it is zero, the weekdays alone match some date
	}
	for month := 1; month <= 12; month++ {
		days := s.sets[dayField] & upTo(daysIn(2000, month)) // a leap year
		if s.has(monthField, month) && days != 0 {
			return false // every date falls on every weekday in some year
		}
	}
	return true
}

// bothDays reports whether a date must match both day fields, not only one.
func (s Schedule) bothDays() bool {
	return s.stars[dayField] || s.stars[weekdayField]
}

func (s Schedule) has(field, value int) bool {
	return s.sets[field]>>value&1 == 1
}

// normalise gives schedules of one meaning one form, so that the normal form is portable: daemons disagree about a day field that is
// complete but does not start with *, and about a * at the start that changes nothing.
func (s Schedule) normalise() Schedule {
	day, weekday := s.full(dayField), s.full(weekdayField)
	switch {
	case s.bothDays() && (day || weekday):
		s.stars[dayField], s.stars[weekdayField] = day, weekday
	case day || weekday: // one of two alternatives matches every date, so every date matches
		for _, i := range [...]int{dayField, weekdayField} {
			s.sets[i], s.stars[i] = fieldAt(i).all(), true
		}
	}
	s.stars[monthField] = s.full(monthField)
	return s
}

func (s Schedule) full(field int) bool {
	return s.sets[field] == fieldAt(field).all()
}

// String returns the normal form: five fields that every daemon reads alike, with lists of numbers in ascending order, Sunday as 0, no
// names and no ranges. A field that starts with * keeps the * where it changes the meaning. Parse of the normal form gives an equal
// schedule.
//
// One meaning has no portable form: day fields that must both match, neither of them complete (0 0 */2 * 1). Busybox reads them as
// alternatives.
//
// The normal form of the zero Schedule is the empty string.
func (s Schedule) String() string {
	if s == (Schedule{}) {
		return ""
	}
	var fields [fieldCount]string
	for i := range fields {
		if f := fieldAt(i); s.stars[i] {
			fields[i] = f.starred(s.sets[i])
		} else {
			fields[i] = list(s.sets[i], strconv.Itoa)
		}
	}
	return strings.Join(fields[:], " ")
}

// list writes a set with commas.
func list(set uint64, name func(int) string) string {
	var items []string
	for _, n := range values(set) {
		items = append(items, name(n))
	}
	return strings.Join(items, ",")
}

// starred writes a set that holds the lowest value so that it starts with *: first the smallest step whose values are all in the set,
// then the other values.
func (f field) starred(set uint64) string {
	step := 1
	for f.fold(steps(f.low, f.high, step))&^set != 0 {
		step++ // ends at count at the latest, the step that yields the lowest value alone
	}
	text := "*"
	if step > 1 {
		text += "/" + strconv.Itoa(step)
	}
	if rest := set &^ f.fold(steps(f.low, f.high, step)); rest != 0 {
		text += "," + list(rest, strconv.Itoa)
	}
	return text
}
