// Package ui shows text to a person: it knows terminals, and nothing of jobs or agents.
package ui

import "github.com/clipperhouse/displaywidth"

// Width returns how many columns of a terminal a line takes. It counts characters as a person sees them (grapheme clusters): a letter
// with its combining marks, or an emoji of several parts, is one. The line has no control characters.
func Width(line string) int { return displaywidth.String(line) }

// Cut returns the beginning of a line, at most columns wide, and the rest. A character is never divided; one that is wider than
// columns is the beginning alone.
func Cut(line string, columns int) (first, rest string) {
	end, taken := 0, 0
	for g := displaywidth.StringGraphemes(line); g.Next(); end += len(g.Value()) {
		if taken += g.Width(); taken > columns && end > 0 {
			break
		}
	}
	return line[:end], line[end:]
}

// Shorten returns a line that is at most columns wide: the line itself, or its beginning and an ellipsis.
func Shorten(line string, columns int) string {
	return displaywidth.TruncateString(line, columns, "…")
}
