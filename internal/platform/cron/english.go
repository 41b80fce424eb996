package cron

import (
	"fmt"
	"math/bits"
	"strings"
)

// values lists a set in ascending order.
func values(set uint64) []int {
	var list []int
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// even is the distance between neighbours if all of them are equally far
// apart, else 0.
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
func spell(list []int, name func(int) string) string {
	return spellWith("and", list, name)
}

// spellWith is spell with another word before the last item.
func spellWith(and string, list []int, name func(int) string) string {
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

// span writes a distance of whole hours, or of less than one, in minutes.
func span(minutes int) string {
	switch {
	case minutes == 1:
		return "minute"
	case minutes == 60:
		return "hour"
	case minutes < 60:
		return decimal(minutes) + " minutes"
	}
	return decimal(minutes/60) + " hours"
}

// ordinal writes 1 as 1st.
func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return decimal(n) + suffix
}
