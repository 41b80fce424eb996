package ui

import (
	"cmp"
	"strings"
)

// MostTyped is the longest text of an Editor, in bytes.
const MostTyped = 256 << 10

// EventKind is what a key did that its Editor cannot do by itself.
type EventKind int

// The kinds of Event.
const (
	Entered     EventKind = iota // the text is complete
	TooLong                      // it was longer than MostTyped, and is dropped
	Interrupted                  // Ctrl-C, which has cleared the text
	Ended                        // Ctrl-D without a text
	Compose                      // the text is to be edited in a program
	Redraw                       // the screen is to be cleared
	Suspended                    // Ctrl-Z
)

// Event tells a program what was typed.
type Event struct {
	Kind EventKind
	Text string
}

// Editor edits a text that is typed at a prompt, which may have several lines. It knows the keys of Emacs and of readline. It reads
// nothing and writes nothing: a program passes it what a terminal sends, and a Screen shows it.
type Editor struct {
	// Complete returns what Tab makes of a text and of the cursor's place in bytes, and reports whether it does anything.
	Complete func(text string, at int) (completed string, place int, ok bool)

	line
	history *History
	decoder decoder
	killed  string  // by the latest Ctrl-K and its like, for Ctrl-Y
	recall  int     // which text of the history is shown, counted from its end; 0: none
	draft   string  // what was typed before a text of the history was shown
	search  *search // nil: none is in progress
	prefix  bool    // Ctrl-X was typed
	over    bool    // the text was longer than MostTyped
}

// search is an incremental search in the history, backwards.
type search struct {
	part   string
	hit    int // index of the text that is shown; -1: none has been found
	before line
}

// NewEditor returns an editor without a text.
func NewEditor(history *History) *Editor {
	e := &Editor{history: history, Complete: func(string, int) (string, int, bool) { return "", 0, false }}
	e.clear()
	return e
}

// Discard drops the text and the beginning of a key. A text that is being pasted goes on.
func (e *Editor) Discard() {
	e.clear()
	if !e.decoder.pasting {
		e.decoder.rest = nil
	}
}

// Text returns what is being edited.
func (e *Editor) Text() string { return e.text }

// SetText replaces it, without empty lines at the end. The cursor is at its end.
func (e *Editor) SetText(text string) {
	e.clear()
	e.insert(cleared(strings.TrimRight(text, "\n")))
}

func (e *Editor) clear() {
	e.line, e.draft, e.recall, e.search, e.prefix, e.over = line{}, "", 0, nil, false, false
}

// press does what one key says. It reports whether the program has something to do.
func (e *Editor) press(t token) (kind EventKind, text string, ok bool) {
	if e.search != nil && !e.searching(t) {
		return 0, "", false
	}
	prefixed := e.prefix
	e.prefix = false
	switch {
	case t.key == "":
		e.add(t.text)
	case prefixed && t.key == ctrlE:
		return Compose, "", true
	case t.key == ctrlX:
		e.prefix = true
	case t.key == enter || t.key == newline:
		return e.enter()
	case t.key == CtrlC:
		e.clear()
		return Interrupted, "", true
	case t.key == ctrlD && e.text == "":
		return Ended, "", true
	case t.key == ctrlL:
		return Redraw, "", true
	case t.key == ctrlZ:
		return Suspended, "", true
	case !e.move(t.key) && !e.kill(t.key):
		e.special(t.key)
	}
	return 0, "", false
}

func (e *Editor) add(text string) {
	if len(e.text)+len(text) > MostTyped {
		e.over = true
		return
	}
	e.insert(text)
}

// enter completes the text. After a backslash at its end it begins another line instead.
func (e *Editor) enter() (kind EventKind, text string, ok bool) {
	if e.at == len(e.text) && strings.HasSuffix(e.text, `\`) {
		e.remove(len(e.text)-1, len(e.text))
		e.add("\n")
		return 0, "", false
	}
	kind, text = Entered, e.text
	if e.over {
		kind, text = TooLong, ""
	}
	e.clear()
	return kind, text, true
}

// move moves the cursor as a key says, and reports whether it is such a key.
func (e *Editor) move(key string) bool {
	switch key {
	case ctrlA, "\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~":
		e.at = e.begin()
	case ctrlE, "\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~":
		e.at = e.end()
	case ctrlB, "\x1b[D", "\x1bOD":
		e.at = e.left()
	case ctrlF, "\x1b[C", "\x1bOC":
		e.at = e.right()
	case "\x1bb", "\x1b[1;5D", "\x1b[1;3D", "\x1bOd", "\x1b[5D":
		e.at = e.back(ofWord)
	case "\x1bf", "\x1b[1;5C", "\x1b[1;3C", "\x1bOc", "\x1b[5C":
		e.at = e.forth(ofWord)
	case "\x1b<":
		e.at = 0
	case "\x1b>":
		e.at = len(e.text)
	default:
		return false
	}
	return true
}

// kill deletes as a key says, and reports whether it is such a key. Ctrl-Y brings back what a key for more than a character deleted.
func (e *Editor) kill(key string) bool {
	switch key {
	case ctrlH, del:
		e.remove(e.left(), e.at)
	case ctrlD, "\x1b[3~":
		e.remove(e.at, e.right())
	case ctrlK:
		e.killed = e.remove(e.at, cmp.Or(e.end()-e.at, e.next()-e.at)+e.at)
	case ctrlU:
		e.killed = e.remove(e.begin(), e.at)
	case ctrlW:
		e.killed = e.remove(e.back(notSpace), e.at)
	case "\x1b\x7f", "\x1b\x08":
		e.killed = e.remove(e.back(ofWord), e.at)
	case "\x1bd", "\x1b[3;5~":
		e.killed = e.remove(e.at, e.forth(ofWord))
	default:
		return false
	}
	return true
}

// special does what the remaining keys say. Other keys do nothing.
func (e *Editor) special(key string) {
	switch key {
	case ctrlY:
		e.add(e.killed)
	case "\x1b\r", "\x1b\n":
		e.add("\n")
	case ctrlP, "\x1b[A", "\x1bOA":
		if !e.up() {
			e.show(e.recall + 1)
		}
	case ctrlN, "\x1b[B", "\x1bOB":
		if !e.down() {
			e.show(e.recall - 1)
		}
	case ctrlR:
		e.search = &search{hit: -1, before: e.line}
	case tab:
		if text, at, ok := e.Complete(e.text, e.at); ok {
			e.line = line{text, at}
		}
	}
}

// show shows a text of the history, counted from its end, or for 0 the draft.
func (e *Editor) show(back int) {
	texts := e.history.texts
	if back < 0 || back > len(texts) {
		return
	}
	if e.recall == 0 {
		e.draft = e.text
	}
	text := e.draft
	if e.recall = back; back > 0 {
		text = texts[len(texts)-back]
	}
	e.line = line{text, len(text)}
}

// searching goes on with a search, and reports whether it is over and the key has its usual meaning.
func (e *Editor) searching(t token) (over bool) {
	s := e.search
	switch t.key {
	case "":
		s.part += t.text
		e.look(max(s.hit+1, 0), s.hit < 0)
	case ctrlR:
		if s.part != "" && s.hit >= 0 {
			e.look(s.hit, false)
		}
	case del, ctrlH:
		part := line{s.part, len(s.part)}
		part.remove(part.left(), part.at)
		if s.part = part.text; s.part == "" {
			s.hit, e.line = -1, s.before
			return false
		}
		e.look(0, true)
	case ctrlG:
		e.line, e.search = s.before, nil
	default:
		e.search = nil
		return t.key != escape
	}
	return false
}

// look shows the newest text that contains the part, among those before an index or among all.
func (e *Editor) look(before int, all bool) {
	if all {
		before = len(e.history.texts)
	}
	if i := e.history.find(e.search.part, before); i >= 0 {
		text := e.history.texts[i]
		e.search.hit, e.recall, e.line = i, len(e.history.texts)-i, line{text, strings.Index(text, e.search.part)}
	}
}

// Mark is what stands before a text that is typed; the other rows of the text are indented by as much.
const Mark = "> "

// view returns the rows of the text with its mark, for a screen of so many columns, and the place of the cursor.
func (e *Editor) view(columns int) (rows []string, row, column int) {
	if s := e.search; s != nil {
		found := "(search) " + s.part + ": "
		if s.hit < 0 && s.part != "" {
			found = "(search, not found) " + s.part + ": "
		}
		found = Shorten(shown(found), max(columns-wide-1, 1))
		first, _ := Cut(strings.ReplaceAll(shown(e.text), "\n", " "), max(columns-Width(found)-1, 1))
		return []string{found + first}, 0, Width(found)
	}
	rows, row, column = e.rows(max(columns-len(Mark)-1, 1)) // the cursor may be after the last character
	for i := range rows {
		rows[i] = strings.Repeat(" ", len(Mark)) + rows[i]
	}
	rows[0] = Mark + rows[0][len(Mark):]
	return rows, row, column + len(Mark)
}
