package cron

import "strings"

// String is the normal form: five fields that every daemon reads alike, with
// lists of numbers in ascending order, Sunday as 0, no names and no ranges. A
// field that starts with *, where that decides anything, still does. Parse of
// the normal form gives an equal schedule.
//

// One meaning has no portable form: day fields that must both match, neither
// of them complete (0 0 */2 * 1). Busybox reads them as alternatives.
//

// The zero Schedule is the empty string.
func (s Schedule) String() string {
	if s == (Schedule{}) {
		return ""
	}
	var fields [fieldCount]string
	for i := range fields {
		if f := fieldAt(i); s.stars[i] {
			fields[i] = f.starred(s.sets[i])
		} else {
			fields[i] = list(s.sets[i])
		}
	}
	return strings.Join(fields[:], " ")
}

// list writes a set as numbers with commas.
func list(set uint64) string {
	var items []string
	for _, n := range values(set) {
		items = append(items, decimal(n))
	}
	return strings.Join(items, ",")
}

// starred writes a set that holds the lowest value so that it starts with *:
// as the smallest step from there that stays inside the set, then the rest.
func (f field) starred(set uint64) string {
	step := 1
	for f.fold(steps(f.low, f.high, step))&^set != 0 {
		step++ // ends at count, which reaches the lowest value alone
	}
	text := "*"
	if step > 1 {
		text += "/" + decimal(step)
	}
	if rest := set &^ f.fold(steps(f.low, f.high, step)); rest != 0 {
		text += "," + list(rest)
	}
	return text
}
