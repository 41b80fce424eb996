package cron

// Crontab is the schedule for a line of a crontab that Debian's cron, cronie
// and busybox read alike: the normal form of String. It fires at the same
// instants in every zone, and is wild if the schedule is.
//

// It returns false if there is no such line: the schedule never fires, or its
// dates must match both day fields, which busybox reads as alternatives.
func (s Schedule) Crontab() (fields string, ok bool) {
	if s.Never() {
		return "", false
	}
	if s.meetingDays() {
		s = s.realDates() // February's 1-29 is *
	}
	if s.meetingDays() {
		return "", false
	}
	return s.String(), true
}

// meetingDays reports whether a date must match both day fields and both
// leave some out.
func (s Schedule) meetingDays() bool {
	return s.bothDays() && !s.full(dayField) && !s.full(weekdayField)
}

// realDates takes out the dates that none of the months has; a day field that
// then decides nothing becomes *. The schedule must be one that can fire.
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
	case 0: // alternatives of which only the weekdays are real
		s.sets[dayField], s.stars[dayField] = fieldAt(dayField).all(), true
	case dates:
		s.sets[dayField] = fieldAt(dayField).all()
	}
	return s.normalise()
}
