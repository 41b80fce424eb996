package ui

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// wrapper writes text word by word, in rows of a number of columns. A word is written when it is complete.
type wrapper struct {
	out     strings.Builder
	columns int    // 0: rows have no end
	prefix  []span // of each row but the first of a line

	column  int
	begun   bool // the row has more than its prefix
	wrapped bool // the row goes on with the line of the row before
	spaces  int  // before the word
	word    []span
	width   int   // of the word
	style   style // in which the terminal writes
}

// wide is the columns of a character of East Asia, beside which a row may end.
const wide = 2

// clinging are characters with which no row begins.
const clinging = "。、，．！？）」』】；："

// put writes a text. The last word of it may go on in the next text.
func (w *wrapper) put(p span) {
	for g := displaywidth.StringGraphemes(p.text); g.Next(); {
		character, width := g.Value(), g.Width()
		switch {
		case character == " ":
			w.flush()
			w.spaces++
			continue
		case character == "\t":
			w.flush()
			w.spaces += 4
			continue
		case width == wide && !strings.Contains(clinging, character), w.columns > 0 && w.width+width > w.room():
			w.flush()
		}
		w.add(character, width, p.style)
		if width == wide && strings.Contains(clinging, character) {
			w.flush()
		}
	}
}

// room is the number of columns of a row beside the prefix, at least 2.
func (w *wrapper) room() int { return max(w.columns-widthOf(w.prefix), wide) }

func widthOf(pieces []span) (n int) {
	for _, p := range pieces {
		n += Width(p.text)
	}
	return n
}

func (w *wrapper) add(character string, width int, s style) {
	w.width += width
	if last := len(w.word) - 1; last >= 0 && w.word[last].style == s {
		w.word[last].text += character
		return
	}
	w.word = append(w.word, span{character, s})
}

// flush writes the word that is complete, on the next row if it does not fit.
func (w *wrapper) flush() {
	if len(w.word) == 0 {
		return
	}
	if w.columns > 0 && w.begun && w.column+w.spaces+w.width > w.columns {
		w.turn()
	}
	if w.wrapped && !w.begun {
		w.spaces = 0
	}
	if w.columns > 0 && !w.begun {
		w.spaces = min(w.spaces, max(w.columns-w.column-w.width, 0))
	}
	if w.spaces > 0 {
		w.set(w.word[0].style &^ (link | deleted)) // no line goes through the space
		w.out.WriteString(strings.Repeat(" ", w.spaces))
	}
	w.column += w.spaces + w.width
	w.write(w.word)
	w.word, w.width, w.spaces, w.begun = nil, 0, 0, true
}

func (w *wrapper) write(pieces []span) {
	for _, p := range pieces {
		w.set(p.style)
		w.out.WriteString(p.text)
	}
}

// set changes the style in which the terminal writes.
func (w *wrapper) set(s style) {
	if s == w.style {
		return
	}
	if w.style != 0 {
		w.out.WriteString(plainStyle)
	}
	w.out.WriteString(s.sequence())
	w.style = s
}

// turn begins another row of the line.
func (w *wrapper) turn() {
	w.newline()
	w.begin(w.prefix)
	w.wrapped = true
}

// begin writes what stands before a row.
func (w *wrapper) begin(prefix []span) {
	w.write(prefix)
	w.column = widthOf(prefix)
}

// newline ends the row, without the spaces at its end.
func (w *wrapper) newline() {
	w.set(0)
	w.out.WriteByte('\n')
	w.column, w.begun, w.wrapped, w.spaces = 0, false, false, 0
}

// take returns what has been written since the last take. The style does not go beyond it.
func (w *wrapper) take() string {
	w.set(0)
	text := w.out.String()
	w.out.Reset()
	return text
}
