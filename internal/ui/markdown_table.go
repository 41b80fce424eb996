package ui

import (
	"slices"
	"strings"
)

// mostTableRows is how many rows of a table wait for its end.
const mostTableRows = 200

// row keeps a row of a table, which is shown when the table has ended.
func (t *Text) row(line string) {
	if t.rows = append(t.rows, line); len(t.rows) == mostTableRows {
		t.table()
	}
}

// table shows the table that has ended. Lines that only look like one are shown as they were typed.
func (t *Text) table() {
	rows := t.rows
	if t.rows = nil; len(rows) == 0 {
		return
	}
	if len(rows) < 2 || !isDelimiter(rows[1]) {
		for _, row := range rows {
			t.start(span{}, span{}, 0)
			t.text(row, true)
			t.endLine()
		}
		return
	}
	var cells [][][]span
	for i, row := range rows {
		if i == 1 {
			continue
		}
		s := style(0)
		if i == 0 {
			s = strong
		}
		var line [][]span
		for _, cell := range split(row) {
			pieces, _ := spans(cell, true, s, ' ')
			line = append(line, pieces)
		}
		cells = append(cells, line)
	}
	t.grid(cells, t.widths(cells))
}

// isDelimiter reports whether a row is the one below the header.
func isDelimiter(row string) bool {
	return strings.Trim(row, "|-: ") == "" && strings.Contains(row, "-")
}

// split divides a row into its cells.
func split(row string) (cells []string) {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	var cell strings.Builder
	quoted := false
	for i := 0; i < len(row); i++ {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !quoted:
			cells = append(cells, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			if c == '`' {
				quoted = !quoted
			}
			cell.WriteByte(c)
		}
	}
	return append(cells, strings.TrimSpace(cell.String()))
}

// widths returns the widths of the columns. Where the terminal is too narrow, the widest give way.
func (t *Text) widths(cells [][][]span) (widths []int) {
	for _, line := range cells {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], widthOf(cell))
		}
	}
	if t.wrap.columns == 0 {
		return widths
	}
	total := gap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for room := t.wrap.columns - t.o.Indent; total > room; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= wide {
			break
		}
		widths[widest]--
	}
	return widths
}

// grid shows the cells, each wrapped within its column, with a line below the header.
func (t *Text) grid(cells [][][]span, widths []int) {
	for n, line := range cells {
		wrapped := make([][]string, len(widths))
		height := 1
		for i, cell := range line {
			w := wrapper{columns: max(widths[i], 1)}
			for _, p := range cell {
				w.put(p)
			}
			w.flush()
			wrapped[i] = strings.Split(w.take(), "\n")
			height = max(height, len(wrapped[i]))
		}
		for y := range height {
			t.gridRow(wrapped, widths, y)
		}
		if n == 0 {
			var rule []string
			for _, width := range widths {
				rule = append(rule, strings.Repeat("─", width))
			}
			t.gridLine(dim + strings.Join(rule, strings.Repeat(" ", gap)) + plainStyle)
		}
	}
}

func (t *Text) gridRow(cells [][]string, widths []int, y int) {
	var row strings.Builder
	space := 0
	for i, cell := range cells {
		text := ""
		if y < len(cell) {
			text = cell[y]
		}
		if text != "" {
			row.WriteString(strings.Repeat(" ", space) + text)
			space = 0
		}
		space += widths[i] - Width(unstyled(text)) + gap
	}
	t.gridLine(row.String())
}

// gridLine writes a row, cut where even the narrowest columns are too wide for the terminal.
func (t *Text) gridLine(row string) {
	room := max(t.wrap.columns-t.o.Indent, wide)
	if plain := unstyled(row); t.wrap.columns > 0 && Width(plain) > room {
		row = Shorten(plain, room)
	}
	t.wrap.out.WriteString(strings.Repeat(" ", t.o.Indent) + row)
	t.wrap.newline()
}
