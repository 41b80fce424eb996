package ui

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// CtrlC is the key that interrupts.
const CtrlC = "\x03"

// Keys that are more than a character.
const (
	ctrlA, ctrlB, ctrlD, ctrlE, ctrlF, ctrlG = "\x01", "\x02", "\x04", "\x05", "\x06", "\x07"
	ctrlH, tab, ctrlK, ctrlL, ctrlN, ctrlP   = "\x08", "\t", "\x0b", "\x0c", "\x0e", "\x10"
	ctrlR, ctrlU, ctrlW, ctrlX, ctrlY, ctrlZ = "\x12", "\x15", "\x17", "\x18", "\x19", "\x1a"
	enter, newline, escape, del              = "\r", "\n", "\x1b", "\x7f"

	pasteBegins, pasteEnds = "\x1b[200~", "\x1b[201~"
	longestSequence        = 64 // bytes
)

// decoder divides what a terminal sends into keys and texts. A key may arrive in several pieces.
type decoder struct {
	rest    []byte // the beginning of a key
	pasting bool   // what arrives is pasted
}

// token is a key in the form in which terminals send it (ESC and a letter for one with Alt), or a text.
type token struct {
	key    string
	text   string
	pasted bool
}

// decode returns what has arrived as a whole.
func (d *decoder) decode(p []byte) (tokens []token) {
	p = append(d.rest, p...)
	d.rest = nil
	for len(p) > 0 {
		var t token
		var n int
		if d.pasting {
			t, n = d.paste(p)
		} else {
			t, n = key(p)
			d.pasting = t.key == pasteBegins
		}
		if n == 0 {
			d.rest = bytes.Clone(p)
			break
		}
		p = p[n:]
		if t != (token{}) {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// paste returns the next part of a pasted text. It ends with the terminal's mark, or with Ctrl-C where the mark was lost.
func (d *decoder) paste(p []byte) (token, int) {
	end := bytes.Index(p, []byte(pasteEnds))
	if i := bytes.IndexByte(p, CtrlC[0]); i >= 0 && (end < 0 || i < end) {
		d.pasting = false
		if i == 0 {
			return token{key: CtrlC}, 1
		}
		return pasted(p[:i]), i
	}
	if end == 0 {
		d.pasting = false
		return token{}, len(pasteEnds)
	}
	if end < 0 {
		end = len(p) - begun(p)
	}
	return pasted(p[:end]), end
}

// begun returns how many bytes at the end of p may be the beginning of the mark that ends a paste, of \r\n, or of a character.
func begun(p []byte) int {
	for n := min(len(pasteEnds)-1, len(p)); n > 0; n-- {
		if strings.HasPrefix(pasteEnds, string(p[len(p)-n:])) {
			return n
		}
	}
	if p[len(p)-1] == enter[0] {
		return 1
	}
	return len(p) - len(plaintext.WholeRunes(p))
}

func pasted(p []byte) token {
	return token{text: cleared(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(p))), pasted: true}
}

// key returns the first key of p, or the text before the next one, and its length; 0 if more must arrive first.
func key(p []byte) (token, int) {
	switch {
	case p[0] == escape[0]:
		n := sequence(p)
		return token{key: string(p[:n])}, n
	case p[0] < ' ' || p[0] == del[0]:
		return token{key: string(p[:1])}, 1
	}
	n := 0
	for n < len(p) && p[n] >= ' ' && p[n] != del[0] && utf8.FullRune(p[n:]) {
		_, size := utf8.DecodeRune(p[n:])
		n += size
	}
	return token{text: cleared(string(p[:n]))}, n
}

// sequence returns the length of the key that begins with Escape; 0 if it is not complete.
func sequence(p []byte) int {
	switch {
	case len(p) < 2:
		return 0
	case p[1] == escape[0]:
		return 1
	case p[1] == 'O':
		return min(len(p), 3) / 3 * 3
	case p[1] != '[':
		if !utf8.FullRune(p[1:]) {
			return 0
		}
		_, size := utf8.DecodeRune(p[1:])
		return 1 + size
	}
	for i, b := range p[2:] {
		if b < ' ' || b > '~' || i == longestSequence {
			return 2 + i // it is broken off
		}
		if b >= '@' {
			return 3 + i
		}
	}
	return 0
}
