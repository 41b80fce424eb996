package cron

import (
	"math/bits"
	"strings"
	"time"
)

// field describes one of the five fields.
type field struct {
	name      string
	low, high int
	kind      string           // what a value is called in messages
	word      func(int) string // returns the English word for a value; nil if that is its number
}

func fieldAt(i int) field {
	return [...]field{
		{name: "minute", high: 59},
		{name: "hour", high: 23},
		{name: "day-of-month", low: 1, high: 31},
		{name: "month", low: 1, high: 12, kind: "a month (1-12 or jan-dec)", word: monthName},
		{name: "day-of-week", high: 7, kind: "a weekday (0-7 or sun-sat)", word: weekdayName},
	}[i]
}

func monthName(n int) string   { return time.Month(n).String() }
func weekdayName(n int) string { return time.Weekday(n % 7).String() }

// weekly reports whether this is the field in which 7 is another name for 0.
func (f field) weekly() bool { return f.high == 7 }

// fold changes Sunday's 7 to 0 in a set.
func (f field) fold(set uint64) uint64 {
	if f.weekly() && set>>7&1 == 1 {
		return set&^(1<<7) | 1
	}
	return set
}

// all returns the set of every value.
func (f field) all() uint64 {
	return f.fold(upTo(f.high) &^ (upTo(f.low) >> 1))
}

// count returns the number of different values, which is also the largest step.
func (f field) count() int { return bits.OnesCount64(f.all()) }

// steps returns the set of low, low+step, low+2*step and so on up to high.
func steps(low, high, step int) uint64 {
	var set uint64
	for n := low; n <= high; n += step {
		set |= 1 << n
	}
	return set
}

// named returns the value whose three letters text is, in any case.
func (f field) named(text string) (int, bool) {
	for n := f.low; f.word != nil && n <= f.high; n++ {
		if strings.EqualFold(text, f.short(n)) {
			return n, true
		}
	}
	return 0, false
}

// short returns the three letters of a value.
func (f field) short(n int) string { return strings.ToLower(f.word(n)[:3]) }

// upTo returns the set of 0 to n; the empty set for a negative n.
func upTo(n int) uint64 { return 1<<(n+1) - 1 }
