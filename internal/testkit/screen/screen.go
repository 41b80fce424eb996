// Package screen runs a program on a pseudo-terminal and keeps what a person would see of it: a terminal emulator interprets what the
// program writes. Tests ask for the lines of the screen, for the cursor, and wait for a text to appear.
package screen

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// Size is that of a terminal, in characters.
type Size struct{ Columns, Rows int }

// Of returns what a wide terminal shows of a text that was written to it, each line with a newline.
func Of(text string) string {
	size := Size{Columns: 500, Rows: 500}
	e := vt.NewEmulator(size.Columns, size.Rows)
	_, _ = e.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	return strings.Join(append(linesOf(e, size), ""), "\n")
}

// linesOf returns the lines without the spaces at their ends and without the empty lines at the bottom.
func linesOf(e *vt.Emulator, size Size) (lines []string) {
	for y := range size.Rows {
		lines = append(lines, lineOf(size.Columns, func(x int) string { return content(e.CellAt(x, y)) }))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func content(c *uv.Cell) string {
	switch {
	case c == nil:
		return " "
	case c.Width == 0: // the second half of a wide character
		return ""
	}
	return c.Content
}

func lineOf(columns int, cell func(x int) string) string {
	var line strings.Builder
	for x := range columns {
		line.WriteString(cell(x))
	}
	return strings.TrimRight(line.String(), " ")
}
