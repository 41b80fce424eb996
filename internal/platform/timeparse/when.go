// Package timeparse reads the times and delays that people and agents write for reminders. The grammar is small and strict: what
// can be understood in two ways is refused, with an error that shows what can be written instead.
//
// Times ("--at"), a day and a clock time:
//
//	17:30                      the next time the clock shows it, today or tomorrow
//	9am                        the same; also 9:15 pm, noon and midnight
//	today 17:30                also "today at 17:30"
//	tomorrow 9am               the day after this one
//	monday 9am                 the first Monday on which 9am is still to come, perhaps today; also mon
//	next monday 9am            the first Monday after today
//	march 7 9am                the next one to come; also mar 7 9am
//	7 march 9am                the same
//	7 march 2026 09:00         that day; also March 7, 2026 9am
//	2026-03-07 9am             that day
//	2026-03-07T09:00           ISO 8601; also with seconds and with an offset
//	2026-03-07T09:00:00+01:00  RFC 3339
//	2026-03-07                 a day alone means 09:00; so do tomorrow, monday, march 7
//
// Delays ("--in"), each unit at most once, the largest first:
//
//	45m                        also 90s, 2h, 3d, 1w; a day is 24 hours
//	1h30m                      also 1h 30m
//	45 minutes                 also 2 hours, 1 hour 30 minutes, 1 day, 2 weeks
//
// Capitals and the amount of space do not matter. There is no locale: words are English, 7/3/2026 is refused. A result is a
// whole second, after now and at most ten years ahead.
//
// Nights on which clocks change are treated as in internal/platform/cron: a time that the clock skips is the first instant after the
// gap, a time that it shows twice is the first showing. Other than a cron line, what is written during the second showing
// means that one rather than nothing: a time is the first showing that is still to come.
//
// The package does no I/O and never asks for the time or the local zone.
package timeparse

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxYears is how many years ahead a reminder may be, by its date. maxDelay is never longer than that.
const (
	maxYears = 10
	maxDelay = maxYears * 365 * day
)

// Parse parses a time. The result is in zone, and a text without an offset is read in zone. It panics if zone is nil.
func Parse(text string, now time.Time, zone *time.Location) (time.Time, error) {
	at, err := read(words(text), now.In(zone))
	switch {
	case err != nil:
		return time.Time{}, explain(err, text, timeForms)
	case !at.After(now):
		return time.Time{}, fmt.Errorf("%s is %s, %w", quote(text), at.Format("2006-01-02 15:04:05 MST"), errPast)
	case at.After(now.AddDate(maxYears, 0, 0)):
		return time.Time{}, far(text)
	}
	return at, nil
}

// Delay parses a delay of at least a second.
func Delay(text string) (time.Duration, error) {
	d, err := sum(words(text))
	if errors.Is(err, errFar) {
		return 0, far(text)
	}
	return d, explain(err, text, delayForms)
}

// Either parses a delay, with or without "in" before it, or else a time. The result is in zone; the errors are those of Parse.
func Either(text string, now time.Time, zone *time.Location) (time.Time, error) {
	w := words(text)
	if len(w) > 0 && w[0] == "in" {
		w = w[1:]
	}
	d, err := sum(w)
	if err == nil {
		return now.Add(d).Truncate(time.Second).In(zone), nil
	}
	if errors.Is(err, errFar) {
		return time.Time{}, far(text)
	}
	at, err := Parse(text, now, zone)
	return at, explain(err, text, eitherForms)
}

// words splits a text and lowers its ASCII letters only: the small forms of some foreign letters are English letters.
func words(text string) []string {
	return strings.Fields(strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text))
}

// nine is the time of day, in seconds, for a day without a time.
const nine = 9 * 3600

// read returns the instant that the words name, which may be in the past. now is in the zone that the words are read in.
func read(w []string, now time.Time) (time.Time, error) {
	if len(w) == 0 {
		return time.Time{}, wrong("empty")
	}
	w = splitISO(w)
	if at, ok := readInstant(w); ok {
		return at.In(now.Location()), nil
	}
	year, month, date := now.Date()
	today := time.Date(year, month, date, 0, 0, 0, 0, time.UTC)
	days, rest, err := readDays(w, today)
	if err != nil {
		return time.Time{}, err
	}
	seconds := nine
	switch {
	case len(days) == 0:
		days = []time.Time{today, today.AddDate(0, 0, 1)}
	case len(rest) > 0 && rest[len(rest)-1] == "midnight":
		return time.Time{}, wrong("midnight is ambiguous: 00:00 is the beginning of the day")
	}
	if len(rest) > 0 {
		if seconds, err = readClock(rest); err != nil {
			return time.Time{}, err
		}
	}
	return firstAhead(days, seconds, now), nil
}
