package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	plain   kind = iota
	command      // text between !` and `
	block        // text from ```! to ```
)

// piece is a part of a body: text, or the content of a command or block.
type piece struct {
	kind kind
	text string
}

const (
	opening    = "!`"
	fence      = "```"
	shellFence = fence + "!"
)

// split splits a body into pieces. It finds at least every command that Claude Code would run, including those with newlines, so that an
// engine that looks for commands as well finds none.
func split(body string) (pieces []piece) {
	begin := 0 // beginning of the text that is not in a piece yet
	for at := 0; at < len(body); {
		found, size := match(body, at)
		if size == 0 {
			at++
			continue
		}
		if begin < at {
			pieces = append(pieces, piece{plain, body[begin:at]})
		}
		pieces = append(pieces, found)
		at += size
		begin = at
	}
	if begin < len(body) {
		pieces = append(pieces, piece{plain, body[begin:]})
	}
	return pieces
}

// match returns the command or block that begins at a position, and its length there; 0 if there is none.
func match(body string, at int) (piece, int) {
	if rest, ok := strings.CutPrefix(body[at:], shellFence); ok {
		if lines, _, closed := strings.Cut(rest, fence); closed {
			return piece{block, lines}, len(shellFence) + len(lines) + len(fence)
		}
	}
	if opens(body, at) {
		if words, _, closed := strings.Cut(body[at+len(opening):], "`"); closed && words != "" {
			return piece{command, words}, len(opening) + len(words) + 1
		}
	}
	return piece{}, 0
}

// opens reports whether a command could begin at a position: at the beginning of a line, or after white space.
func opens(body string, at int) bool {
	if !strings.HasPrefix(body[at:], opening) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(body[:at])
	return at == 0 || unicode.IsSpace(before) || before == '\ufeff'
}

// defuse puts a space into everything that could begin a command or block. The output of a command may contain such text, or form it
// together with the text beside it.
func defuse(text string) string {
	text = strings.ReplaceAll(text, shellFence, fence+" !") // must be first, because it can make a ! follow white space
	var b strings.Builder
	for at := range len(text) {
		b.WriteByte(text[at])
		if opens(text, at) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
