package ui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// line is a text that is being edited and the place of the cursor, in bytes. The cursor is always between two characters as a person
// sees them (grapheme clusters). The text may have several lines.
type line struct {
	text string
	at   int
}

// insert puts a text at the cursor. A combining mark joins the character before it.
func (l *line) insert(text string) {
	l.text, l.at = l.text[:l.at]+text+l.text[l.at:], l.at+len(text)
	l.snap()
}

// remove deletes the bytes between two places, moves the cursor there, and returns what was deleted.
func (l *line) remove(from, to int) (gone string) {
	gone = l.text[from:to]
	l.text, l.at = l.text[:from]+l.text[to:], from
	l.snap()
	return gone
}

// snap moves the cursor to the end of the character that it would divide.
func (l *line) snap() {
	begin := l.begin()
	if l.at == begin {
		return
	}
	end := begin
	for g := displaywidth.StringGraphemes(l.text[begin:]); end < l.at && g.Next(); {
		end += len(g.Value())
	}
	l.at = end
}

// begin returns where the cursor's line begins, end where it ends.
func (l *line) begin() int { return strings.LastIndexByte(l.text[:l.at], '\n') + 1 }

func (l *line) end() int {
	if i := strings.IndexByte(l.text[l.at:], '\n'); i >= 0 {
		return l.at + i
	}
	return len(l.text)
}

// left returns the place one character before the cursor, right the one after it.
func (l *line) left() int {
	begin := l.begin()
	if l.at == begin {
		return max(begin-1, 0)
	}
	last, next := begin, begin
	for g := displaywidth.StringGraphemes(l.text[begin:l.at]); g.Next(); next += len(g.Value()) {
		last = next
	}
	return last
}

func (l *line) right() int {
	if l.at == len(l.text) {
		return l.at
	}
	first, _ := Cut(l.text[l.at:l.next()], 0)
	return l.at + len(first)
}

// next returns the end of the cursor's line, with its newline if the cursor is there.
func (l *line) next() int { return max(l.end(), min(l.at+1, len(l.text))) }

// back returns the beginning of the word before the cursor, skipping first what is not in a word.
func (l *line) back(inWord func(rune) bool) int {
	before := strings.TrimRightFunc(l.text[:l.at], func(r rune) bool { return !inWord(r) })
	return len(strings.TrimRightFunc(before, inWord))
}

// forth returns the end of the word after the cursor.
func (l *line) forth(inWord func(rune) bool) int {
	after := strings.TrimLeftFunc(l.text[l.at:], func(r rune) bool { return !inWord(r) })
	return len(l.text) - len(strings.TrimLeftFunc(after, inWord))
}

// ofWord reports whether a character belongs to a word.
func ofWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == zeroWidthJoiner
}

func notSpace(r rune) bool { return !unicode.IsSpace(r) }

const zeroWidthJoiner = '\u200d'

// up moves the cursor to the line above and reports whether there is one. It keeps the column as far as that line goes.
func (l *line) up() bool {
	begin := l.begin()
	if begin == 0 {
		return false
	}
	column := Width(shown(l.text[begin:l.at]))
	above := strings.LastIndexByte(l.text[:begin-1], '\n') + 1
	l.at = above + l.place(l.text[above:begin-1], column)
	return true
}

// down is up for the line below.
func (l *line) down() bool {
	end := l.end()
	if end == len(l.text) {
		return false
	}
	column := Width(shown(l.text[l.begin():l.at]))
	below := end + 1
	rest, _, _ := strings.Cut(l.text[below:], "\n")
	l.at = below + l.place(rest, column)
	return true
}

// place returns the place of a column in a line, in bytes.
func (*line) place(text string, column int) int {
	at, taken := 0, 0
	for g := displaywidth.StringGraphemes(shown(text)); g.Next(); at += len(g.Value()) {
		if taken += g.Width(); taken > column {
			break
		}
	}
	return at
}

// rows divides the text into rows of at most so many columns, and returns the row and the column of the cursor.
func (l *line) rows(columns int) (rows []string, row, column int) {
	text, offset := shown(l.text), 0
	for part := range strings.SplitSeq(text, "\n") {
		for first := true; first || part != ""; first = false {
			piece, rest := Cut(part, columns)
			if l.at >= offset && l.at <= offset+len(piece) {
				row, column = len(rows), Width(text[offset:l.at])
			}
			rows, part, offset = append(rows, piece), rest, offset+len(piece)
		}
		offset++ // the newline
	}
	return rows, row, column
}

// shown returns a text as it is shown while it is edited: a tab takes one column.
func shown(text string) string { return strings.ReplaceAll(text, "\t", " ") }

// cleared returns a text that was typed or pasted without what only a terminal interprets.
func cleared(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if r == utf8.RuneError {
			return -1
		}
		return plaintext.Rune(r)
	}, text)
}
