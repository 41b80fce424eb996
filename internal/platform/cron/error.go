package cron

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SyntaxError says what is wrong with an expression, and where.
type SyntaxError struct {
	Expr   string // the expression that was parsed
	Field  string // minute, hour, day-of-month, month, day-of-week or empty
	Offset int    // position of the fault in Expr, in bytes
	Length int    // length of the faulty text, in bytes; 0 if something is missing at Offset
	Reason string // what is wrong and, in parentheses, what to write instead
}

// Error returns one line such as
//
//	column 9: day-of-week "fri-mon": range runs backwards (write fri-sun,mon)
//
// The column counts bytes from 1.
func (e *SyntaxError) Error() string {
	const longest = 40 // how much of the expression a message quotes, in bytes
	place := e.Expr[min(e.Offset, len(e.Expr)):min(e.Offset+e.Length, len(e.Expr))]
	if len(place) > longest {
		place = place[:longest] + "..."
	}
	if e.Field != "" || place != "" {
		place = strings.TrimLeft(e.Field+" ", " ") + strconv.Quote(place) + ": "
	}
	return fmt.Sprintf("column %d: %s%s", e.Offset+1, place, e.Reason)
}

// checkCharacters rejects characters that no field can hold. The code after it then only has ASCII letters, digits and the four signs of
// the grammar.
func checkCharacters(p part) *SyntaxError {
	for i, r := range p.text {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if letter || '0' <= r && r <= '9' || strings.ContainsRune("*,-/", r) {
			continue
		}
		_, size := utf8.DecodeRuneInString(p.text[i:])
		return p.sub(i, i+size).fail(refusal(r))
	}
	return nil
}

// refusal returns why a character is rejected.
func refusal(r rune) string {
	refused := map[rune]string{
		'?': "? is not supported (write *)",
		'#': "nth weekdays (#) are not supported",
		'~': "random times (~) are not supported",
		'%': "% is not supported",
		'+': "numbers have no sign",
	}
	switch reason := refused[r]; {
	case reason != "":
		return reason
	case strings.ContainsRune("\u2010\u2011\u2012\u2013\u2014\u2212", r):
		return "not an ASCII character (write -)"
	case r >= utf8.RuneSelf:
		return "not an ASCII character"
	}
	return "unexpected character"
}

// explain returns what is wrong with text that is neither a number nor a name.
func (f field) explain(p part) *SyntaxError {
	word := strings.TrimLeft(p.text, "0123456789")
	switch strings.ToUpper(word) {
	case "L":
		return p.fail("last days (L) are not supported")
	case "W", "LW", "WL":
		return p.fail("nearest weekdays (W) are not supported")
	}
	if before := len(p.text) - len(word); before > 0 {
		return p.sub(before, len(p.text)).fail("unexpected text after a number")
	}
	if f.word == nil {
		return p.fail("not a number in " + strconv.Itoa(f.low) + "-" + strconv.Itoa(f.high))
	}
	for n := f.low; n <= f.high; n++ {
		if len(word) > 3 && strings.HasPrefix(strings.ToLower(f.word(n)), strings.ToLower(word)) {
			return p.fail("names have three letters (write " + f.short(n) + ")")
		}
	}
	return p.fail("not " + f.kind)
}

// stepAdvice returns why a step on a single value is rejected, and what to write instead.
func (f field) stepAdvice(base part, n int, step part) string {
	instead := base.text + "-" + f.last(base) + "/" + step.text
	switch n {
	case f.low:
		instead = "*/" + step.text
	case f.high:
		instead = base.text
	}
	return "a step needs * or a range (write " + instead + ")"
}

// turnAdvice writes a range that runs backwards as two ranges. With a step it gives no advice, because two ranges would mean something
// else.
func (f field) turnAdvice(from, to part, high int, stepped bool) string {
	if stepped {
		return ""
	}
	first := f.low
	if f.weekly() {
		first = 1 // in the advice the week runs from Monday to Sunday
	}
	start := strconv.Itoa(first)
	if !digits(to.text) {
		start = f.short(first)
	}
	one := strings.ToLower(from.text)
	if last := f.last(from); one != last {
		one += "-" + last
	}
	if f.weekly() && high == 0 {
		return " (write " + one + ")"
	}
	two := strings.ToLower(to.text)
	if two != start {
		two = start + "-" + two
	}
	return " (write " + one + "," + two + ")"
}

// last returns the highest value, as a name if end is a name.
func (f field) last(end part) string {
	switch {
	case digits(end.text):
		return strconv.Itoa(f.high)
	case f.weekly():
		return "sun"
	}
	return f.short(f.high)
}
