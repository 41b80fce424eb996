package cron

import "fmt"

// OnCalendar returns the schedule for a systemd timer: the values of one OnCalendar= line, or of two where either day field is enough. It
// returns nil if the schedule never fires. zone is an IANA name with exact spelling; if it is empty, the timer follows the zone of the
// system.
//
// Systemd differs on the nights when clocks change: it skips the times of a gap, and fires a repeated time only at its first showing,
// even if the schedule is wild.
func (s Schedule) OnCalendar(zone string) []string {
	if s.Never() {
		return nil
	}
	s = s.realDates()
	if zone != "" {
		zone = " " + zone
	}
	// write lists only: systemd gives steps and ranges other meanings
	value := func(days, weekdays uint64) string {
		return fmt.Sprintf("%s*-%s-%s %s:%s:00%s", weekdayNames(weekdays),
			calendarList(monthField, s.sets[monthField]), calendarList(dayField, days),
			calendarList(hourField, s.sets[hourField]), calendarList(minuteField, s.sets[minuteField]), zone)
	}
	if s.bothDays() {
		return []string{value(s.sets[dayField], s.sets[weekdayField])}
	}
	return []string{
		value(s.sets[dayField], fieldAt(weekdayField).all()),
		value(fieldAt(dayField).all(), s.sets[weekdayField]),
	}
}

// calendarList writes a set as systemd does: values of two digits, or * for every value.
func calendarList(field int, set uint64) string {
	if set == fieldAt(field).all() {
		return "*"
	}
	return list(set, func(n int) string { return fmt.Sprintf("%02d", n) })
}

// weekdayNames returns the weekday part of a calendar value and a space; "" for every weekday, because systemd has no * here. Its weeks
// end on Sunday.
func weekdayNames(set uint64) string {
	if set == fieldAt(weekdayField).all() {
		return ""
	}
	return list(sundayLast(set), func(n int) string { return weekdayName(n)[:3] }) + " "
}

// sundayLast changes the bit of Sunday from 0 to 7.
func sundayLast(weekdays uint64) uint64 {
	return weekdays&^1 | weekdays&1<<7
}

// Crontab returns the schedule for a line of a crontab that Debian's cron, cronie and busybox read alike: the normal form of String. It
// fires at the same instants in every zone, and is wild if the schedule is.
//
// ok is false if there is no such line: the schedule never fires, or its dates must match both day fields, which busybox reads as
// alternatives.
func (s Schedule) Crontab() (fields string, ok bool) {
	if s.Never() {
		return "", false
	}
	if s.meetingDays() {
		s = s.realDates() // so that 1-29 in February becomes *
	}
	if s.meetingDays() {
		return "", false
	}
	return s.String(), true
}

// meetingDays reports whether a date must match both day fields and neither field allows every value.
func (s Schedule) meetingDays() bool {
	return s.bothDays() && !s.full(dayField) && !s.full(weekdayField)
}

// realDates removes the dates that none of the months has. A day field that then excludes nothing becomes *. The schedule must be one
// that can fire.
func (s Schedule) realDates() Schedule {
	longest := 0
	for month := 1; month <= 12; month++ {
		if s.has(monthField, month) {
			longest = max(longest, daysIn(2000, month)) // a leap year
		}
	}
	dates := fieldAt(dayField).all() & upTo(longest)
	s.sets[dayField] &= dates
	switch s.sets[dayField] {
	case 0: // the day fields were alternatives, and only the weekdays exist
		s.sets[dayField], s.stars[dayField] = fieldAt(dayField).all(), true
	case dates:
		s.sets[dayField] = fieldAt(dayField).all()
	}
	return s.normalise()
}
