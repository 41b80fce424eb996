package update

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Clean makes a message fit to be shown and stored, as Add does: valid UTF-8 without control characters, trimmed, at most
// MaxChars, and never to be mistaken for the sentinel. Cleaning twice changes nothing.
func Clean(message string) string {
	text := strings.TrimSpace(plaintext.Lines(message))
	if n := utf8.RuneCountInString(text); n > MaxChars {
		text = cut(text, n)
	}
	if _, ok := sentinelCount(text); ok {
		text = `"` + text + `"`
	}
	return text
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
