package plaintext

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Check returns an error if a text is longer than longest bytes, or contains something that programs read differently: invalid UTF-8, the
// replacement character, or control characters including newlines.
func Check(s string, longest int) error {
	if len(s) > longest {
		return fmt.Errorf("longer than %d bytes", longest)
	}
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("not valid UTF-8")
	}
	for _, r := range s {
		if r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' {
			return errors.New("no newline")
		}
		if unicode.IsControl(r) {
			return fmt.Errorf("no control character (%U)", r)
		}
	}
	return nil
}
