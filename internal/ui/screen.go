package ui

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Screen is a terminal with a text that grows, and below it a status line and a prompt, which are drawn again in place. What is written
// to it may end within a line: what follows goes on there. Every change is one write, so that nothing flickers.
type Screen struct {
	mu sync.Mutex
	w  io.Writer
	o  ScreenOptions

	editor  *Editor
	status  string
	columns int    // of the terminal when it was drawn
	column  int    // in which the text ends that grows; 0: it has ended its line
	below   drawn  // what is on the terminal below that text
	held    []byte // what was written while another program has the terminal
	lent    bool   // it has
}

// drawn is the rows that a Screen has drawn below the text.
type drawn struct {
	widths      []int
	row, column int // of the cursor
}

// The columns and rows of a terminal that does not know its size.
const (
	usualColumns = 80
	usualRows    = 24
)

// ScreenOptions say what kind of a terminal a Screen has.
type ScreenOptions struct {
	Size   func() (columns, rows int) // nil, or 0 for an unknown number: the usual one
	Simple bool                       // the terminal has no control sequences: there is no status line, and the prompt is only its mark
	Raw    bool                       // the terminal is in raw mode
	Colour bool
}

// NewScreen returns a screen without a status line and without a prompt.
func NewScreen(w io.Writer, o ScreenOptions) *Screen {
	if o.Size == nil {
		o.Size = func() (int, int) { return 0, 0 }
	}
	return &Screen{w: w, o: o}
}

// Columns returns the width of the terminal.
func (s *Screen) Columns() int {
	columns, _ := s.bounds()
	return columns
}

func (s *Screen) bounds() (columns, rows int) {
	columns, rows = s.o.Size()
	if columns < 1 {
		columns = usualColumns
	}
	if rows < 1 {
		rows = usualRows
	}
	return columns, rows
}

// Write writes text above the prompt. Its sequences are for colour and attributes only.
func (s *Screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.draw(string(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Note writes text on lines by themselves, above the prompt.
func (s *Screen) Note(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.column > 0 {
		text = "\n" + text
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return s.draw(text)
}

// Remark is Note for a line that is not to draw attention.
func (s *Screen) Remark(line string) {
	if s.o.Colour {
		line = dim + line + plainStyle
	}
	_ = s.Note(line) // a write that fails shows when text is written
}

// Status shows a line below the text; "" removes it.
func (s *Screen) Status(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Simple || line == s.status {
		return
	}
	s.status = line
	_ = s.draw("") // see change
}

// Edit shows what an editor edits, at a prompt below the text; nil removes the prompt.
func (s *Screen) Edit(e *Editor) { s.change(func() { s.editor = e }) }

// Type lets the editor edit, and shows the result. What was entered stays above the prompt.
func (s *Screen) Type(p []byte) (events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entered strings.Builder
	for _, t := range s.editor.decoder.decode(p) {
		before := s.editor.line
		kind, text, ok := s.editor.press(t)
		if !ok {
			continue
		}
		switch events = append(events, Event{kind, text}); kind {
		case Entered, TooLong:
			entered.WriteString(s.echo(before.text))
		case Redraw:
			_, _ = io.WriteString(s.w, "\x1b[H\x1b[2J")
			s.below, s.column = drawn{}, 0
		}
	}
	text := entered.String()
	if text != "" && s.column > 0 {
		text = "\n" + text
	}
	_ = s.draw(text)
	return events
}

// echo returns what stays of a text that was entered: as it was shown, in bold. Of a text longer than the screen a part stays.
func (s *Screen) echo(text string) string {
	if s.o.Simple { // the terminal itself shows what is typed
		s.below = drawn{}
		return ""
	}
	columns, most := s.bounds()
	rows, _, _ := (&Editor{line: line{text: text}}).view(columns)
	more := ""
	if len(rows) > most {
		more = fmt.Sprintf("  … %d more rows\n", len(rows)-most)
		rows = rows[:most]
	}
	var echo strings.Builder
	for _, row := range rows {
		if s.o.Colour {
			row = bold + row + plainStyle
		}
		echo.WriteString(row + "\n")
	}
	return echo.String() + more
}

// Change changes what the editor edits, and shows it.
func (s *Screen) Change(do func(*Editor)) { s.change(func() { do(s.editor) }) }

// Redraw draws the rows below the text for the terminal's present size.
func (s *Screen) Redraw() { s.change(func() {}) }

// change changes what is below the text, and draws it. As every write that fails, one shows when text is written.
func (s *Screen) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	_ = s.draw("")
}

// fit adapts to a new width. A terminal that has become narrower has wrapped the rows that are too long for it.
func (s *Screen) fit(columns int) {
	if columns == s.columns {
		return
	}
	s.columns = columns
	if len(s.below.widths) > 0 {
		above := s.below.column / columns
		for _, width := range s.below.widths[:s.below.row] {
			above += max(width-1, 0)/columns + 1
		}
		s.below.row = above
	}
	if s.column >= columns {
		s.column = 0 // the text goes on in a new row
	}
}

// Lend removes what is below the text, and keeps what is written until the returned function is called: another program has the
// terminal meanwhile.
func (s *Screen) Lend() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.draw(s.ending())
	s.erase()
	s.lent = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		text := s.held
		s.lent, s.held = false, nil
		_ = s.draw(string(text))
	}
}

// Close removes what is below the text, and ends its line.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = ""
	if s.o.Simple && s.below.column > 0 {
		_, _ = io.WriteString(s.w, "\n")
		s.below = drawn{}
	}
	s.editor = nil
	_ = s.draw(s.ending())
}

// ending returns what ends the line of the text.
func (s *Screen) ending() string {
	if s.column > 0 {
		return "\n"
	}
	return ""
}

func (s *Screen) erase() {
	if b := s.home(); b != "" {
		_, _ = io.WriteString(s.w, b+"\x1b[J")
	}
	s.below = drawn{}
}

// drawSimply writes text on a terminal without control sequences, and the mark of the prompt where it has gone.
func (s *Screen) drawSimply(text string) error {
	if text == "" {
		return nil
	}
	if s.below.column > 0 {
		text = "\n" + text
		s.below = drawn{}
	}
	s.column = 1
	if strings.HasSuffix(text, "\n") {
		s.column = 0
	}
	_, err := io.WriteString(s.w, text)
	return err
}

// Ready shows the mark of the prompt where a terminal has no control sequences.
func (s *Screen) Ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Simple && s.below.column == 0 {
		_, _ = io.WriteString(s.w, s.ending()+Mark)
		s.column, s.below.column = 0, len(Mark)
	}
}
