package timeparse

import (
	"strconv"
	"strings"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// sum parses numbers with units, the largest unit first, and adds them up.
func sum(w []string) (total time.Duration, err error) {
	rest := strings.Join(w, " ")
	if rest == "" {
		return 0, wrong("empty")
	}
	smallest := time.Duration(0)
	for rest != "" {
		count := leading(rest, '0', '9')
		name := leading(strings.TrimPrefix(rest[len(count):], " "), 'a', 'z')
		u := unit(name)
		switch {
		case count == rest: // there are no digits
			return 0, wrong("a number alone is not enough")
		case count == "", u == 0:
			return 0, cannot(rest)
		case smallest != 0 && u >= smallest:
			return 0, wrong("the largest unit comes first, each only once")
		}
		if n, err := strconv.ParseInt(count, 10, 64); err != nil || n > int64(maxDelay/u) {
			total = maxDelay + 1 // continue, so that errors in the rest are found
		} else {
			total = min(total+time.Duration(n)*u, maxDelay+1)
		}
		smallest = u
		rest = strings.TrimPrefix(strings.TrimPrefix(rest[len(count):], " ")[len(name):], " ")
	}
	switch {
	case total == 0:
		return 0, wrong("that is now")
	case total > maxDelay:
		return 0, errFar
	}
	return total, nil
}

// unit returns the length of a unit; 0 if the name is unknown.
func unit(name string) time.Duration {
	return map[string]time.Duration{
		"w": week, "week": week, "weeks": week,
		"d": day, "day": day, "days": day,
		"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
		"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
		"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	}[name]
}

// leading returns the beginning of a text that consists of characters from low to high.
func leading(s string, low, high rune) string {
	return s[:len(s)-len(strings.TrimLeftFunc(s, func(r rune) bool { return low <= r && r <= high }))]
}
