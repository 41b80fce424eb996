package cron_test

import (
	"fmt"
	"math/rand"
	"strings"
	"time"
)

// spec is a random expression together with its meaning, which the generator
// knows without parsing anything.
type spec struct {
	text string
	set  [5][60]bool // Sunday is 0
	star [5]bool     // the field's text starts with *
}

var (
	fieldLow   = [5]int{0, 0, 1, 1, 0}
	fieldHigh  = [5]int{59, 23, 31, 12, 7}
	fieldCount = [5]int{60, 24, 31, 12, 7}
	fieldNames = [5][]string{
		3: {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
		4: {"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
	}
)

// mix says how random expressions are made.
type mix struct {
	plainDays bool // * * * in most of them, so that one night is often hit
	nights    bool // hours near midnight to three in most of them
}

func randomSpec(r *rand.Rand, m mix) spec {
	var s spec
	var texts [5]string
	for field := range texts {
		star := 0.35
		if field == 0 {
			star = 0.15
		}
		if m.plainDays && field >= 2 {
			star = 0.85
		}
		texts[field] = s.randomField(r, field, star, m)
	}
	s.text = strings.Join(texts[:], " ")
	return s
}

func (s *spec) randomField(r *rand.Rand, field int, star float64, m mix) string {
	var items []string
	if r.Float64() < star {
		for i := range s.set[field] {
			s.set[field][i] = true
		}
		items = append(items, "*")
	}
	for len(items) == 0 || r.Float64() < 0.3 {
		items = append(items, s.randomItem(r, field, m))
	}
	if r.Float64() < 0.2 {
		r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	text := strings.Join(items, ",")
	s.star[field] = text[0] == '*'
	return text
}

func (s *spec) randomItem(r *rand.Rand, field int, m mix) string {
	low, high := fieldLow[field], fieldHigh[field]
	if field == 1 && m.nights && r.Float64() < 0.8 {
		high = 3
	}
	a, b := low+r.Intn(high-low+1), low+r.Intn(high-low+1)
	step, stepText := 1, ""
	if r.Float64() < 0.4 {
		step = 1 + r.Intn(fieldCount[field])
		if r.Float64() < 0.7 {
			step = min(1+r.Intn(7), fieldCount[field])
		}
		stepText = fmt.Sprint("/", step)
	}
	switch kind := r.Intn(5); {
	case kind < 2:
		s.add(field, a, a, 1)
		return number(r, field, a, false)
	case kind < 4:
		a, b = min(a, b), max(a, b)
		s.add(field, a, b, step)
		return number(r, field, a, false) + "-" + number(r, field, b, a > 0) + stepText
	}
	if stepText == "" {
		stepText = "/1"
	}
	s.add(field, low, fieldHigh[field], step)
	return "*" + stepText
}

func (s *spec) add(field, low, high, step int) {
	for n := low; n <= high; n += step {
		value := n
		if field == 4 && n == 7 {
			value = 0
		}
		s.set[field][value] = true
	}
}

// number writes a value as digits or a name. Sunday's 7 may be a name only as
// the end of a range that does not start on Sunday.
func number(r *rand.Rand, field, n int, endOfRange bool) string {
	names := fieldNames[field]
	if names == nil || r.Intn(2) == 0 || (n == 7 && field == 4 && !endOfRange) {
		if r.Intn(8) == 0 {
			return fmt.Sprintf("%02d", n)
		}
		return fmt.Sprint(n)
	}
	name := names[(n-fieldLow[field])%len(names)]
	switch r.Intn(3) {
	case 0:
		return strings.ToUpper(name)
	case 1:
		return strings.ToUpper(name[:1]) + name[1:]
	}
	return name
}

func (s *spec) wild() bool {
	return s.star[0] || s.star[1]
}

// matches applies the rules of cron to a civil time, given in UTC.
func (s *spec) matches(civil time.Time) bool {
	return s.set[0][civil.Minute()] && s.set[1][civil.Hour()] && s.onDate(civil.Month(), civil.Day(), civil.Weekday())
}

// onDate reports whether the three day fields match.
func (s *spec) onDate(month time.Month, date int, weekday time.Weekday) bool {
	byDate, byWeekday := s.set[2][date], s.set[4][weekday]
	if s.star[2] || s.star[4] {
		return s.set[3][month] && byDate && byWeekday
	}
	return s.set[3][month] && (byDate || byWeekday)
}
