package ui

import (
	"fmt"
	"io"
	"strings"
)

// home returns what moves the cursor to the first row below the text; "" if nothing is drawn there.
func (s *Screen) home() string {
	if len(s.below.widths) == 0 || s.o.Simple {
		return ""
	}
	return up(s.below.row) + "\r"
}

// draw writes text and the rows below it. The caller holds the lock.
func (s *Screen) draw(text string) error {
	if s.lent {
		s.held = append(s.held, text...)
		return nil
	}
	if s.o.Simple {
		return s.drawSimply(text)
	}
	columns, rows := s.bounds()
	s.fit(columns)
	below, place := s.bottom(columns, rows)
	was := len(s.below.widths)
	if text == "" && was+len(below) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString(s.home())
	if was > 0 && s.column > 0 && (text != "" || len(below) == 0) {
		if len(below) == 0 {
			b.WriteString("\x1b[J")
		}
		b.WriteString(up(1) + right(s.column))
	}
	s.grow(&b, text, columns)
	if len(below) > 0 && s.column > 0 && (was == 0 || text != "") {
		b.WriteString(s.newline())
	}
	for i, row := range below {
		if i > 0 {
			b.WriteString(s.newline())
		}
		if b.WriteString(row); was > 0 {
			b.WriteString("\x1b[K")
		}
	}
	if len(below) < was && (len(below) > 0 || s.column == 0) {
		b.WriteString("\x1b[J")
	}
	if last := len(below) - 1; last >= 0 && (place.row < last || place.column < place.widths[last]) {
		b.WriteString(up(last-place.row) + "\r" + right(place.column))
	}
	s.below = place
	_, err := io.WriteString(s.w, b.String())
	return err
}

// newline returns what moves the cursor to the begin of the next row.
func (s *Screen) newline() string {
	if s.o.Raw {
		return "\r\n"
	}
	return "\n"
}

// grow writes text over the rows below it.
func (s *Screen) grow(b *strings.Builder, text string, columns int) {
	if text == "" {
		return
	}
	newline, was := s.newline(), len(s.below.widths) > 0
	if was {
		newline += "\x1b[K"
	}
	last, long := s.column, false
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			last = 0
		}
		last += Width(unstyled(line))
		long = long || last > columns
	}
	switch {
	case was && long: // the terminal continues it where the other rows are
		b.WriteString("\x1b[J")
	case was && s.column == 0:
		b.WriteString("\x1b[K")
	}
	b.WriteString(strings.ReplaceAll(text, "\n", newline))
	if s.column = last; last >= columns {
		b.WriteString(newline)
		s.column = 0
	}
}

// bottom returns the rows below the text, and the cursor's place in them. Those of a text that is longer than the screen are the ones
// around the cursor.
func (s *Screen) bottom(columns, most int) (rows []string, place drawn) {
	if s.status != "" {
		rows = append(rows, Shorten(s.status, columns-1))
		place.column = Width(rows[0])
	}
	if s.editor != nil {
		typed, row, column := s.editor.view(columns)
		most = max(most-len(rows)-1, 1)
		if first := max(row-most+1, 0); len(typed) > most {
			typed = typed[first:min(first+most, len(typed))]
			row -= first
		}
		place.row, place.column = row+len(rows), column
		rows = append(rows, typed...)
	}
	for i, row := range rows {
		place.widths = append(place.widths, Width(row))
		if !s.o.Colour {
			continue
		}
		if i == 0 && s.status != "" {
			rows[i] = dim + row + plainStyle
		} else if rest, ok := strings.CutPrefix(row, Mark); ok {
			rows[i] = bold + Mark + plainStyle + rest
		}
	}
	return rows, place
}

// The styles of a terminal.
const (
	bold       = "\x1b[1m"
	dim        = "\x1b[2m"
	italic     = "\x1b[3m"
	underline  = "\x1b[4m"
	struck     = "\x1b[9m"
	cyan       = "\x1b[36m"
	plainStyle = "\x1b[0m"
)

// unstyled returns a line without the sequences for colour and attributes.
func unstyled(text string) string {
	for {
		begin := strings.Index(text, "\x1b[")
		if begin < 0 {
			return text
		}
		end := strings.IndexByte(text[begin:], 'm')
		if end < 0 {
			return text[:begin]
		}
		text = text[:begin] + text[begin+end+1:]
	}
}

func up(rows int) string {
	if rows <= 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA", rows)
}

func right(columns int) string {
	if columns <= 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dC", columns)
}
