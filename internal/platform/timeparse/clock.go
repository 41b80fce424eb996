package timeparse

import (
	"strconv"
	"strings"
)

// readClock parses a time of day, and returns it in seconds since midnight: 17:30, 17:30:00, 9am, 9:15 pm, noon, midnight, with or
// without "at" before it.
func readClock(w []string) (seconds int, err error) {
	all := strings.Join(w, " ")
	if len(w) > 1 && w[0] == "at" {
		w = w[1:]
	}
	if len(w) == 2 && (w[1] == "am" || w[1] == "pm") {
		w = []string{w[0] + w[1]}
	}
	for _, read := range []func(string) (int, bool){clock24, clock12} {
		if seconds, ok := read(w[0]); ok && len(w) == 1 {
			return seconds, nil
		}
	}
	switch {
	case len(w) == 1 && isNumber(w[0], 1, len(w[0])):
		return 0, wrong("a number alone is not enough")
	case strings.Contains(all, "/"):
		return 0, wrong("day or month first?")
	}
	return 0, cannot(all)
}

// clock24 parses 9:00, 17:30, 17:30:59 and 17:30:59.123, as programs write it. The fraction is dropped.
func clock24(s string) (seconds int, ok bool) {
	hour, rest, _ := strings.Cut(s, ":")
	minute, rest, more := strings.Cut(rest, ":")
	second, fraction, fractional := strings.Cut(rest, ".")
	h, okHour := number(hour, 1, 23)
	m, okMinute := number(minute, 2, 59)
	if !okHour || !okMinute {
		return 0, false
	}
	if !more {
		return h*3600 + m*60, true
	}
	sec, ok := number(second, 2, 59)
	return h*3600 + m*60 + sec, ok && (!fractional || isNumber(fraction, 1, 9))
}

// clock12 parses 9am, 9:15pm, noon and midnight. 12am is midnight, 12pm is noon.
func clock12(s string) (seconds int, ok bool) {
	switch s {
	case "noon":
		return 12 * 3600, true
	case "midnight":
		return 0, true
	}
	rest, afternoon := strings.CutSuffix(s, "pm")
	rest, morning := strings.CutSuffix(rest, "am")
	hour, minute, exact := strings.Cut(rest, ":")
	if !exact {
		minute = "00"
	}
	h, okHour := number(hour, 1, 12)
	m, okMinute := number(minute, 2, 59)
	if morning == afternoon || !okHour || !okMinute || h == 0 {
		return 0, false
	}
	if h %= 12; afternoon {
		h += 12
	}
	return h*3600 + m*60, true
}

// number parses one or two digits: at least least digits, and a value of at most highest.
func number(s string, least, highest int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && isNumber(s, least, 2) && n <= highest
}

func isNumber(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
