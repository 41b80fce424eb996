package ui

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Wrap breaks a line at spaces and beside wide characters, into lines of at most so many columns; all but the first begin with
// indent spaces. A word that is longer than a line, such as a path, and a command between backquotes stay whole, so that they can
// be copied: the terminal breaks them.
func Wrap(line string, columns, indent int) (lines []string) {
	text, at := "", 0
	for i, p := range pieces(line) {
		size := Width(p.text)
		if i > 0 && at+p.gap+size > columns && strings.TrimSpace(text) != "" {
			lines = append(lines, strings.TrimRight(text, " "))
			text, at, p.gap = strings.Repeat(" ", indent), indent, 0
		}
		text += strings.Repeat(" ", p.gap) + p.text
		at += p.gap + size
	}
	return append(lines, text)
}

// Fold wraps each line of a text, with an indent of two spaces. A command between backquotes for which a line has no room stands on a line
// of its own, further indented and without them.
func Fold(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(folded(strings.TrimSuffix(line, "\n"), columns), "\n") + "\n")
	}
	return b.String()
}

func folded(line string, columns int) []string {
	parts := Wrap(line, columns, 2)
	for i, part := range parts {
		command, quoted := strings.CutPrefix(strings.TrimLeft(part, " "), "`")
		command, _, closed := strings.Cut(command, "`")
		if i == 0 || !quoted || !closed {
			continue
		}
		lines := append(slices.Clone(parts[:i]), "    "+command)
		_, rest, _ := strings.Cut(line, "`"+command+"`")
		if rest = strings.TrimLeft(rest, " ,;."); rest != "" {
			lines = append(lines, folded("  "+rest, columns)...)
		}
		return lines
	}
	return parts
}

// piece is a part of a line that is not broken.
type piece struct {
	gap  int // spaces before it
	text string
}

// pieces divides a line where it may be broken.
func pieces(line string) (list []piece) {
	gap, quoted := 0, false
	for i, word := range strings.Split(line, " ") {
		if i > 0 {
			gap++
		}
		switch opens := strings.Count(word, "`")%2 == 1; {
		case quoted:
			last := &list[len(list)-1]
			last.text += strings.Repeat(" ", gap) + word
			quoted = !opens
		case word == "":
			continue
		default:
			quoted = opens
			list = append(list, divided(gap, word, quoted)...)
		}
		gap = 0
	}
	return list
}

// divided divides a word beside its wide characters, which scripts without spaces have, unless it is to stay whole.
func divided(gap int, word string, whole bool) (list []piece) {
	if whole || len(word) == Width(word) {
		return []piece{{gap, word}}
	}
	joined := false // the next character belongs to the last piece
	for g := displaywidth.StringGraphemes(word); g.Next(); gap = 0 {
		wide := g.Width() > 1
		if joined && !wide {
			list[len(list)-1].text += g.Value()
			continue
		}
		list, joined = append(list, piece{gap, g.Value()}), !wide
	}
	return list
}
