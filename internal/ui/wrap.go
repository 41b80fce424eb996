package ui

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Wrap breaks a line at spaces and beside wide characters, into lines of at most so many columns; all but the first begin with
// indent spaces. A word that is longer than a line, such as a path, and a command stay whole, so that they can be copied: the
// terminal breaks them. A command is what stands between backquotes, or what begins with the word ollim after a colon or a question
// mark, and goes on to a comma, a semicolon or a bracket.
func Wrap(line string, columns, indent int) (lines []string) {
	return rows(pieces(line, true), columns, indent, false)
}

// Fold wraps each line of a message, with an indent of two spaces. A command for which a line has no room stands on a line by
// itself, without backquotes.
func Fold(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		list := pieces(strings.TrimSuffix(line, "\n"), true)
		b.WriteString(strings.Join(rows(list, columns, 2, true), "\n") + "\n")
	}
	return b.String()
}

// Flow wraps each line of a text that somebody else wrote, which has no commands. What follows the first row of a line begins where
// the text of the line does, after its spaces and the mark of a list, and not before column indent.
func Flow(text string, columns, indent int) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\t", "    ")) {
		body, newline := strings.CutSuffix(line, "\n")
		begin := max(min(hanging(body), columns/2), indent)
		b.WriteString(strings.Join(rows(pieces(body, false), columns, begin, false), "\n"))
		if newline {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// hanging returns the column in which the text of a line begins.
func hanging(line string) int {
	body := strings.TrimLeft(line, " ")
	mark, _, _ := strings.Cut(body, " ")
	number := strings.TrimSuffix(mark, ".")
	isItem := slices.Contains([]string{"-", "*", "+", ">"}, mark) || number != mark && strings.Trim(number, "0123456789") == ""
	if !isItem || len(mark) == len(body) {
		return len(line) - len(body)
	}
	return len(line) - len(body) + len(mark) + 1
}

// rows arranges the pieces of a line in rows. With alone, a command for which a row has no room has one by itself.
func rows(list []piece, columns, indent int, alone bool) (lines []string) {
	margin := strings.Repeat(" ", indent)
	text, at := "", 0
	for i, p := range list {
		size, begun := Width(p.text), strings.Trim(text, " ") != ""
		if i > 0 && begun && at+p.gap+size > columns {
			lines = append(lines, strings.TrimRight(text, " "))
			text, at, begun = margin, indent, false
			p.gap = 0
		}
		if alone && p.command != "" && !begun && (i > 0 || p.gap+size > columns) {
			lines = append(lines, text+p.command)
			text, at = margin, indent
			if i+1 < len(list) {
				list[i+1].gap = 0
			}
			continue
		}
		text += strings.Repeat(" ", p.gap) + p.text
		at += p.gap + size
	}
	if len(lines) > 0 && strings.Trim(text, " ") == "" {
		return lines
	}
	return append(lines, text)
}

// piece is a part of a line that is not broken.
type piece struct {
	gap     int // spaces before it
	text    string
	command string // in it; "" for none
}

// pieces divides a line where it may be broken. With commands, one is a piece.
func pieces(line string, commands bool) (list []piece) {
	gap, words := 0, strings.Split(line, " ")
	for i := 0; i < len(words); i++ {
		if i > 0 {
			gap++
		}
		if words[i] == "" {
			continue
		}
		if n := commandAt(words, i); commands && n > 0 {
			text := strings.Join(words[i:i+n], " ")
			list = append(list, piece{gap, text, bare(text)})
			i += n - 1
		} else {
			list = append(list, divided(gap, words[i])...)
		}
		gap = 0
	}
	return list
}

// commandAt returns how many words the command has that begins with a word; 0 if none does.
func commandAt(words []string, i int) int {
	odd := func(word, mark string) bool { return strings.Count(word, mark)%2 == 1 }
	if odd(words[i], "`") {
		for n, word := range words[i+1:] {
			if odd(word, "`") {
				return n + 2
			}
		}
		return 0
	}
	before := i - 1
	for before >= 0 && words[before] == "" {
		before--
	}
	if words[i] != "ollim" || i+1 == len(words) || before < 0 || strings.TrimRight(words[before], ":?") == words[before] {
		return 0
	}
	for n, quoted := 1, false; ; n++ {
		if i+n == len(words) || !quoted && (words[i+n] == "" || words[i+n][0] == '(') {
			return n
		}
		if quoted = quoted != odd(words[i+n], `"`); !quoted && strings.ContainsAny(words[i+n][len(words[i+n])-1:], ",;") {
			return n + 1
		}
	}
}

// bare returns a command without what stands around it.
func bare(text string) string {
	if _, after, quoted := strings.Cut(text, "`"); quoted {
		text, _, _ = strings.Cut(after, "`")
		return text
	}
	return strings.TrimRight(text, ",;")
}

// divided divides a word beside its wide characters, which scripts without spaces have.
func divided(gap int, word string) (list []piece) {
	if len(word) == Width(word) {
		return []piece{{gap: gap, text: word}}
	}
	joined := false // the next character belongs to the last piece
	for g := displaywidth.StringGraphemes(word); g.Next(); gap = 0 {
		wide := g.Width() > 1
		if joined && !wide {
			list[len(list)-1].text += g.Value()
			continue
		}
		list, joined = append(list, piece{gap: gap, text: g.Value()}), !wide
	}
	return list
}
