package ui

import (
	"slices"
	"strings"
)

// Fit says what becomes of a column of a table where a line has no room for all columns.
type Fit int

// The fits. Columns for which a line has no room even then stand below the line of their record, indented.
const (
	Whole Fit = iota // an id or a number is not shortened
	Brief            // a name is shortened to no less than a few characters
	Prose            // a text is continued in the next line
	Below            // a text always stands below
)

// least is how narrow a column of a fit may become.
func (f Fit) least(columns int) int {
	switch f {
	case Brief:
		return min(columns, 12)
	case Prose:
		return min(columns, 24)
	}
	return columns
}

const (
	gap    = 2 // columns between two cells
	indent = 2 // of what stands below a line
)

// Cell is a field of a record: a line of printable text.
type Cell struct {
	Text   string
	Short  string // what is shown instead where the column is narrower than its texts; "" for none
	Colour string
	Fit    Fit
}

// least is how narrow the column of the cell may become.
func (c Cell) least() int {
	if c.Short != "" {
		return Width(c.Short)
	}
	return c.Fit.least(Width(c.Text))
}

// Table arranges records in columns.
type Table struct {
	Width  int      // columns of the terminal; 0: lines may be of any length
	Header []string // names of the columns; a table without records has no header

	rows    [][]Cell
	columns []column
	kept    int // columns that stand in the first line of a record
}

type column struct {
	width, least int
	fit          Fit
	short        bool // has cells with a short text
	narrow       bool // shows them
	empty        bool // has no text but its name
}

// Add adds a record. Nothing is aligned with the last cell of one that is shorter than others.
func (t *Table) Add(cells ...Cell) { t.rows = append(t.rows, cells) }

// Lines returns the lines of the table.
func (t *Table) Lines() (lines []string) {
	if len(t.rows) == 0 {
		return nil
	}
	names := make([]Cell, len(t.Header))
	for i, name := range t.Header {
		names[i].Text = name
	}
	t.measure(names)
	t.shrink()
	for i, c := range t.columns[:len(names)] {
		if i >= t.kept && (c.empty || c.fit == Below) { // its name would stand alone
			names[i].Text = ""
		}
	}
	for _, row := range append([][]Cell{names}, t.rows...) {
		lines = append(lines, t.record(row)...)
	}
	return lines
}

// measure sets the columns, and how many of them a line has room for.
func (t *Table) measure(names []Cell) {
	longest := len(names)
	for _, row := range t.rows {
		longest = max(longest, len(row))
	}
	t.columns, t.kept = make([]column, longest), 0
	for i := range t.columns {
		t.columns[i].empty = true
	}
	t.widen(names)
	for _, row := range t.rows {
		t.widen(row)
		for i, cell := range row {
			t.columns[i].empty = t.columns[i].empty && cell.Text == ""
		}
	}
	at := 0
	for i := range t.columns {
		c := &t.columns[i]
		if at += c.least; t.Width > 0 && i > 0 && (c.fit == Below || at > t.Width) {
			return
		}
		at += gap
		t.kept++
	}
}

// widen makes the columns wide enough for a record. The last cell of a short one does not count.
func (t *Table) widen(row []Cell) {
	for i, cell := range row {
		c := &t.columns[i]
		c.fit, c.short = max(c.fit, cell.Fit), c.short || cell.Short != ""
		if i < len(row)-1 || len(row) == len(t.columns) {
			c.width, c.least = max(c.width, Width(cell.Text)), max(c.least, cell.least())
		}
	}
}

// shrink makes the widest columns narrower until the first line of each record fits.
func (t *Table) shrink() {
	if t.Width == 0 {
		return
	}
	room := t.Width - (t.kept-1)*gap
	for i := range t.columns[:t.kept] {
		c := &t.columns[i]
		c.width = min(c.width, max(c.least, t.Width))
		room -= c.width
	}
	for room < 0 {
		c := t.widest()
		if c == nil {
			return
		}
		next := c.width - 1
		if c.short {
			next, c.narrow = c.least, true
		}
		room, c.width = room+c.width-next, next
	}
}

// widest returns the widest column that can become narrower; one with short texts comes first.
func (t *Table) widest() (widest *column) {
	for i := range t.columns[:t.kept] {
		c := &t.columns[i]
		if c.width > c.least && (widest == nil || !widest.short && (c.short || c.width > widest.width)) {
			widest = c
		}
	}
	return widest
}

// record returns the lines of a record.
func (t *Table) record(row []Cell) []string {
	var b block
	for i, cell := range row {
		if i == t.kept {
			b.below(row[i:], t.Width)
			break
		}
		if t.columns[i].narrow && cell.Short != "" {
			cell.Text = cell.Short
		}
		parts, fits := cell.parts(t.room(row, i, b.at))
		if !fits && i > 0 {
			b.below(row[i:], t.Width)
			break
		}
		b.place(parts, cell.Colour)
		b.at += t.columns[i].width + gap
	}
	return b.lines
}

// room is how wide a cell may be. The last one of a short record may take what is left of the line.
func (t *Table) room(row []Cell, i, at int) int {
	if i < len(row)-1 || len(row) == len(t.columns) {
		return t.columns[i].width
	}
	if t.Width == 0 {
		return Width(row[i].Text)
	}
	return t.Width - at
}

// parts returns the cell as lines of so many columns, and whether it can be shown so.
func (c Cell) parts(room int) (parts []string, fits bool) {
	width := Width(c.Text)
	switch {
	case width <= room:
		return []string{c.Text}, true
	case c.Fit == Brief && room >= c.Fit.least(width):
		return []string{Shorten(c.Text, room)}, true
	case c.Fit == Prose && room >= c.Fit.least(width):
		parts = Wrap(c.Text, room, 0)
		return parts, !slices.ContainsFunc(parts, func(part string) bool { return Width(part) > room })
	}
	return []string{c.Text}, false
}

// block is the lines of one record.
type block struct {
	lines  []string
	widths []int // of lines, without colours
	at     int   // where the next cell begins in the line
}

// place writes the parts of a cell, one below the other.
func (b *block) place(parts []string, colour string) {
	for i, part := range parts {
		if i == len(b.lines) {
			b.lines, b.widths = append(b.lines, ""), append(b.widths, 0)
		}
		if part != "" {
			b.lines[i] += strings.Repeat(" ", max(b.at-b.widths[i], 0)) + Paint(part, colour)
			b.widths[i] = max(b.at, b.widths[i]) + Width(part)
		}
	}
}

// below writes cells in lines of their own.
func (b *block) below(cells []Cell, columns int) {
	margin, text, width := strings.Repeat(" ", indent), "", 0
	end := func() {
		if text != "" {
			b.lines, text, width = append(b.lines, margin+text), "", 0
		}
	}
	for _, cell := range cells {
		if cell.Text == "" {
			continue
		}
		if cell.Short != "" && indent+Width(cell.Text) > columns {
			cell.Text = cell.Short
		}
		if cell.Fit == Brief {
			cell.Text = Shorten(cell.Text, columns-indent)
		}
		if cell.Fit == Below || width > 0 && indent+width+gap+Width(cell.Text) > columns {
			end()
		}
		parts := Wrap(cell.Text, columns-indent, 0)
		for i, part := range parts {
			if i > 0 {
				end()
			} else if width > 0 {
				text, width = text+strings.Repeat(" ", gap), width+gap
			}
			text, width = text+Paint(part, cell.Colour), width+Width(part)
		}
	}
	end()
}
