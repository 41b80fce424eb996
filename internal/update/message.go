package update

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text of an agent's fit to be shown to a person: what Add does to a message.
func Clean(message string) string { return clean(message) }

// clean makes a message fit to be shown and stored: valid UTF-8 without control characters, trimmed, at most MaxChars, and
// never to be mistaken for the sentinel. Cleaning twice changes nothing.
func clean(message string) string {
	text := strings.TrimSpace(strings.Map(harmless, strings.ToValidUTF8(message, "\uFFFD")))
	if n := utf8.RuneCountInString(text); n > MaxChars {
		text = cut(text, n)
	}
	if _, ok := sentinelCount(text); ok {
		text = `"` + text + `"`
	}
	return text
}

// harmless drops (-1) what could move a cursor or turn the direction of writing: C0 and C1 controls, DEL, and the
// embeddings, overrides and isolates of bidirectional text.
func harmless(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return -1
	}
	return r
}

// cut shortens a text of n characters to MaxChars, the marker included.
func cut(text string, n int) string {
	marker := fmt.Sprintf("… [cut: %d characters in all]", n)
	keep := MaxChars - utf8.RuneCountInString(marker)
	for i := range text {
		if keep == 0 {
			return strings.TrimRightFunc(text[:i], unicode.IsSpace) + marker
		}
		keep--
	}
	return text
}

const (
	sentinelHead = "("
	sentinelTail = " earlier update(s) omitted — cap reached)"
	// sentinelDigits keeps sums of counts from other people's files far from overflow.
	sentinelDigits = 15
)

// sentinel is the message that stands for n updates left out.
func sentinel(n int) string { return sentinelHead + strconv.Itoa(n) + sentinelTail }

// sentinelCount is n if the message is exactly sentinel(n).
func sentinelCount(message string) (n int, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(message, sentinelHead), sentinelTail)
	if len(digits) > sentinelDigits {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && sentinel(n) == message
}
