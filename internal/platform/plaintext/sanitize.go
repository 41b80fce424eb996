// Package plaintext makes foreign text safe to show and store: valid UTF-8, without characters that move the cursor, hide
// preceding text or change the direction of writing, and without the values of secrets.
package plaintext

import (
	"strings"
	"unicode"
)

// Lines cleans a text and keeps its line breaks and tabs. It is idempotent.
func Lines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return Rune(r)
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// Line cleans a text to one line, with one space for each run of white space, and none at the ends.
func Line(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return Rune(r)
	}, strings.ToValidUTF8(s, "\ufffd"))), " ")
}

// Rune returns r, or -1 for a character that only a terminal interprets: C0 and C1 controls including line breaks, DEL,
// and the embeddings, overrides and isolates of bidirectional text.
func Rune(r rune) rune {
	if unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 {
		return -1
	}
	return r
}

// OneLine returns the text of an error in one line.
func OneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
