package cron

import (
	"strconv"
	"strings"
)

// Parse parses an expression of five fields, separated by spaces or tabs, or a nickname such as @daily. Any error is a *SyntaxError.
func Parse(expr string) (Schedule, error) {
	parts := split(expr)
	if len(parts) > 0 && parts[0].text[0] == '@' {
		meaning, err := nickname(parts)
		if err != nil {
			err.Expr = expr
			return Schedule{}, err
		}
		return Parse(meaning)
	}
	s, err := parseFields(expr, parts)
	if err == nil {
		return s, nil
	}
	if line := meant(expr); line != "" {
		err = &SyntaxError{Expr: expr, Length: len(expr), Reason: "not a cron line (write " + line + ")"}
	}
	return Schedule{}, err
}

func parseFields(expr string, parts []part) (s Schedule, _ *SyntaxError) {
	if err := checkCount(expr, parts); err != nil {
		err.Expr = expr
		return Schedule{}, err
	}
	for i, p := range parts {
		f := fieldAt(i)
		set, err := f.parse(p)
		if err != nil {
			err.Expr, err.Field = expr, f.name
			return Schedule{}, err
		}
		s.sets[i], s.stars[i] = set, p.text[0] == '*'
	}
	return s.normalise(), nil
}

// part is a piece of an expression with its position in bytes.
type part struct {
	text string
	at   int
}

func (p part) sub(from, to int) part {
	return part{p.text[from:to], p.at + from}
}

// cut splits a part around the first separator.
func (p part) cut(separator byte) (before, after part, found bool) {
	i := strings.IndexByte(p.text, separator)
	if i < 0 {
		return p, part{}, false
	}
	return p.sub(0, i), p.sub(i+1, len(p.text)), true
}

func (p part) fail(reason string) *SyntaxError {
	return &SyntaxError{Offset: p.at, Length: len(p.text), Reason: reason}
}

// split returns the fields. Only spaces and tabs separate them: a line break inside an expression is an error.
func split(expr string) (parts []part) {
	end := 0
	for word := range strings.FieldsFuncSeq(expr, func(r rune) bool { return r == ' ' || r == '\t' }) {
		at := end + strings.Index(expr[end:], word)
		parts = append(parts, part{word, at})
		end = at + len(word)
	}
	return parts
}

// nickname returns the five fields that an @word stands for. Generated schedules never contain the @word itself, because systemd's weekly
// is a Monday.
func nickname(parts []part) (string, *SyntaxError) {
	meanings := map[string]string{
		"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
		"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
	}
	name := parts[0]
	meaning, lower := meanings[name.text], strings.ToLower(name.text)
	switch {
	case meaning != "" && len(parts) == 1:
		return meaning, nil
	case meaning != "":
		return "", parts[1].fail("nothing may follow " + name.text)
	case meanings[lower] != "":
		return "", name.fail("nicknames are lower case (write " + lower + ")")
	case lower == "@reboot":
		return "", name.fail("a system start is not a time on the calendar")
	case lower == "@every":
		return "", name.fail("intervals are not supported (write a step such as */5 * * * *)")
	}
	return "", name.fail("unknown nickname (write @hourly, @daily, @weekly, @monthly or @yearly)")
}

// checkCount returns an error unless there are five fields.
func checkCount(expr string, parts []part) *SyntaxError {
	const fields = "(minute hour day-of-month month day-of-week)"
	n := len(parts)
	switch {
	case n == 0:
		return part{at: len(expr)}.fail("expression is empty, 5 fields are needed " + fields)
	case strings.HasPrefix(parts[0].text, "CRON_TZ=") || strings.HasPrefix(parts[0].text, "TZ="):
		return parts[0].fail("a zone is not part of the expression")
	case n < fieldCount:
		end := parts[n-1].at + len(parts[n-1].text)
		noun := " fields"
		if n == 1 {
			noun = " field"
		}
		return part{at: end}.fail(strconv.Itoa(n) + noun + ", 5 are needed " + fields)
	case n > fieldCount:
		return parts[fieldCount].fail(strconv.Itoa(n) +
			" fields, 5 are needed (seconds and years are not supported)")
	}
	return nil
}

// parse parses a field, which is a list of items.
func (f field) parse(p part) (uint64, *SyntaxError) {
	if err := checkCharacters(p); err != nil {
		return 0, err
	}
	var all uint64
	rest, more := p, true
	for more {
		var item part
		item, rest, more = rest.cut(',')
		if item.text == "" {
			comma := max(item.at-p.at-1, 0)
			return 0, p.sub(comma, comma+1).fail("empty list item")
		}
		set, err := f.item(item)
		if err != nil {
			return 0, err
		}
		all |= set
	}
	return f.fold(all), nil
}

// item parses one of: * | value | value-value | */step | value-value/step.
func (f field) item(p part) (uint64, *SyntaxError) {
	base, stepText, stepped := p.cut('/')
	step := 1
	if stepped {
		n, err := f.step(p, stepText)
		if err != nil {
			return 0, err
		}
		step = n
	}
	switch {
	case base.text == "":
		return 0, p.fail("nothing before the step (write *" + p.text + ")")
	case base.text == "*":
		return steps(f.low, f.high, step), nil
	case base.text[0] == '*':
		return 0, base.sub(1, len(base.text)).fail("unexpected text after *")
	}
	from, to, ranged := base.cut('-')
	if !ranged {
		n, err := f.value(base)
		if err == nil && stepped {
			err = p.fail(f.stepAdvice(base, n, stepText))
		}
		return 1 << n, err
	}
	low, high, err := f.ends(base, from, to)
	if err != nil {
		return 0, err
	}
	if low > high {
		return 0, base.fail("range runs backwards" + f.turnAdvice(from, to, high, stepped))
	}
	return steps(low, high, step), nil
}

// step parses the text after the slash of an item.
func (f field) step(item, p part) (int, *SyntaxError) {
	if p.text == "" {
		return 0, item.sub(len(item.text)-1, len(item.text)).fail("step is missing")
	}
	if !digits(p.text) {
		return 0, p.fail("step is not a number")
	}
	n := number(p.text)
	if n < 1 || n > f.count() {
		return 0, p.fail("step is not in 1-" + strconv.Itoa(f.count()))
	}
	return n, nil
}

// ends parses both ends of a range.
func (f field) ends(whole, from, to part) (low, high int, err *SyntaxError) {
	switch {
	case from.text == "" || strings.HasPrefix(to.text, "-"):
		return 0, 0, whole.fail("numbers have no sign")
	case to.text == "":
		return 0, 0, whole.fail("range has no end")
	case strings.Contains(to.text, "-"):
		return 0, 0, whole.fail("range has more than two ends")
	}
	if low, err = f.value(from); err != nil {
		return 0, 0, err
	}
	if high, err = f.value(to); err != nil {
		return 0, 0, err
	}
	if f.weekly() && high == 0 && low > 0 && !digits(to.text) {
		high = 7 // the range ends on Sunday, as in fri-sun; sun-sun is one day
	}
	return low, high, nil
}

// value parses a number or a name.
func (f field) value(p part) (int, *SyntaxError) {
	if n, ok := f.named(p.text); ok {
		return n, nil
	}
	if !digits(p.text) {
		return 0, f.explain(p)
	}
	n := number(p.text)
	if n < f.low || n > f.high {
		reason := "not in " + strconv.Itoa(f.low) + "-" + strconv.Itoa(f.high)
		if n == 24 && f.high == 23 {
			reason += " (midnight is 0)"
		}
		return 0, p.fail(reason)
	}
	return n, nil
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// number parses digits. A number that does not fit in an int becomes the largest int.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
