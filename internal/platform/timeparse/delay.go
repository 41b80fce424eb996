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

// sum reads numbers with units, the largest unit first.
func sum(w []string) (total time.Duration, err error) {
	rest := strings.Join(w, " ")
	if rest == "" {
		return 0, &Unreadable{Reason: "empty"}
	}
	smallest := time.Duration(0)
	for rest != "" {
		count := leading(rest, '0', '9')
		name := leading(strings.TrimPrefix(rest[len(count):], " "), 'a', 'z')
		u := unit(name)
		switch {
		case count == "":
			return 0, cannot(rest)
		case count == rest:
			return 0, &Unreadable{Reason: "a number alone is not enough"}
		case u == 0:
			return 0, cannot(rest)
		case smallest != 0 && u >= smallest:
			return 0, &Unreadable{Reason: "the largest unit comes first, each only once"}
		}
		if n, err := strconv.ParseInt(count, 10, 64); err != nil || n > int64(maxDelay/u) {
			total = maxDelay + 1 // what follows must still be readable
		} else {
			total = min(total+time.Duration(n)*u, maxDelay+1)
		}
		smallest = u
		rest = strings.TrimPrefix(rest[len(count):], " ")
		rest = strings.TrimPrefix(rest[len(name):], " ")
	}
	switch {
	case total == 0:
		return 0, &Unreadable{Reason: "that is now"}
	case total > maxDelay:
		return 0, ErrFar
	}
	return total, nil
}

// unit is 0 for a name that is none.
func unit(name string) time.Duration {
	switch name {
	case "w", "week", "weeks":
		return week
	case "d", "day", "days":
		return day
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	}
	return 0
}

// leading is what a text begins with, of letters or digits between two.
func leading(s string, low, high byte) string {
	n := 0
	for n < len(s) && s[n] >= low && s[n] <= high {
		n++
	}
	return s[:n]
}
