package cron

import (
	"strings"
	"unicode/utf8"
)

// checkCharacters refuses what no field can hold, so that everything after it
// deals with ASCII letters, digits and the four signs of the grammar.
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

// refusal says why a character is not welcome.
func refusal(r rune) string {
	switch r {
	case '?':
		return "? is not supported (write *)"
	case '#':
		return "nth weekdays (#) are not supported"
	case '~':
		return "random times (~) are not supported"
	case '%':
		return "% is not supported"
	case '+':
		return "numbers have no sign"
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2212':
		return "not an ASCII character (write -)"
	}
	if r >= utf8.RuneSelf {
		return "not an ASCII character"
	}
	return "unexpected character"
}

// explain says what is wrong with text that is neither a number nor a name.
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
		return p.fail("not a number in " + decimal(f.low) + "-" + decimal(f.high))
	}
	for n := f.low; n <= f.high; n++ {
		if len(word) > 3 && strings.HasPrefix(strings.ToLower(f.word(n)), strings.ToLower(word)) {
			return p.fail("names have three letters (write " + f.short(n) + ")")
		}
	}
	return p.fail("not " + f.kind)
}

// stepAdvice is the reason against a step on a single value.
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

// turnAdvice writes a range that runs backwards as two that do not. With a
// step the two would not mean what the one seems to say.
func (f field) turnAdvice(from, to part, high int, stepped bool) string {
	if stepped {
		return ""
	}
	first := f.low
	if f.weekly() {
		first = 1 // the week of the suggestion runs from Monday to Sunday
	}
	start := decimal(first)
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

// last is the highest value, as a name if the given end is a name.
func (f field) last(end part) string {
	switch {
	case digits(end.text):
		return decimal(f.high)
	case f.weekly():
		return "sun"
	}
	return f.short(f.high)
}
