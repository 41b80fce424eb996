package skill

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	plain   kind = iota
	command      // between !` and `
	block        // from ```! to ```
)

// piece is a part of a body: text as it is, or what stands in a command or block.
type piece struct {
	kind kind
	text string
}

const (
	opening    = "!`"
	fence      = "```"
	shellFence = fence + "!"
)

// split takes a body apart. It finds at least what Claude Code would run, commands with newlines included, so that nothing
// is left for an engine that looks for it as well.
func split(body string) (pieces []piece) {
	begin := 0 // of the text that is not a piece yet
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

// match is the command or block that begins at a place, and how long it is there; 0 if there is none.
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

// opens reports whether a command could begin here: at the beginning of a line, or after white space.
func opens(body string, at int) bool {
	if !strings.HasPrefix(body[at:], opening) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(body[:at])
	return at == 0 || unicode.IsSpace(before) || before == '\ufeff'
}

// defuse puts a space into whatever could begin a command or block. What a command printed may do so by itself, or together
// with the text beside it.
func defuse(text string) string {
	text = strings.ReplaceAll(text, shellFence, fence+" !") // first: it can make a ! follow white space
	var b strings.Builder
	for at := range len(text) {
		b.WriteByte(text[at])
		if opens(text, at) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
