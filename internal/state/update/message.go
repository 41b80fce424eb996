package update

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Clean makes a message fit to be shown and stored, as Add does: valid UTF-8 without control characters, trimmed, at
// most MaxChars long, and distinct from any sentinel. Clean is idempotent.
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

// cut shortens a text of n characters to MaxChars, including the marker.
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
	// sentinelDigits keeps sums of counts read from files far from overflow.
	sentinelDigits = 15
)

// sentinel returns the message that stands for n dropped updates.
func sentinel(n int) string { return sentinelHead + strconv.Itoa(n) + sentinelTail }

// sentinelCount returns n if the message is exactly sentinel(n).
func sentinelCount(message string) (n int, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(message, sentinelHead), sentinelTail)
	if len(digits) > sentinelDigits {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && sentinel(n) == message
}
