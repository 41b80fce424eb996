package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/ui"
)

// This file decides what a terminal gets that a pipe or file does not: lists aligned under a header line, times relative to now,
// colour, a pager, and the progress of a run. Which records and columns there are does not depend on the terminal.

func isTerminal(stream any) bool {
	switch s := stream.(type) {
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	}
	return false
}

func sizeOf(stream any) (width, height int) {
	if f, ok := stream.(*os.File); ok {
		width, height, _ = term.GetSize(int(f.Fd()))
	}
	return width, height
}

// colour reports whether a stream gets colour. NO_COLOR comes before CLICOLOR_FORCE.
func (d *deps) colour(stream any) bool {
	value := func(name string) string {
		v, _ := d.Lookup(name)
		return v
	}
	switch {
	case value("NO_COLOR") != "":
		return false
	case !slices.Contains([]string{"", "0"}, value("CLICOLOR_FORCE")):
		return true
	}
	return isTerminal(stream) && !d.dumb() && value("CLICOLOR") != "0"
}

// dumb reports whether the terminal may have no control sequences.
func (d *deps) dumb() bool {
	kind, _ := d.Lookup("TERM")
	return kind == "" || kind == "dumb"
}

// talk is standard error. What is written to it stands above the status line, and while a pager runs it goes there.
func (d *deps) talk() io.Writer {
	switch {
	case d.pager.running() && isTerminal(d.Stderr):
		return d.pager
	case d.screen != nil:
		return notes{d.screen}
	}
	return d.Stderr
}

// sink is where standard output ends: its pager if it has one, else the stream.
type sink struct{ d *deps }

func (s sink) Write(p []byte) (int, error) {
	switch {
	case s.d.pager.pages():
		return s.d.pager.Write(p)
	case s.d.screen != nil && sameTerminal(s.d.Stdout, s.d.Stderr):
		return s.d.screen.Write(p)
	}
	return s.d.Stdout.Write(p)
}

// clean writes to a terminal, without what could take it over.
type clean struct{ w io.Writer }

func (c clean) Write(p []byte) (int, error) {
	_, err := io.WriteString(c.w, plaintext.Lines(string(p)))
	return len(p), err
}

// styled is standard output for text that is clean but for its own colour and attributes.
func (d *deps) styled() io.Writer {
	if c, ok := d.Out.(clean); ok {
		return c.w
	}
	return d.Out
}

func (c clean) Flush() error { return flush(c.w) }

// terminal is standard output behind what is buffered: what was written to it has arrived.
type terminal struct{ d *deps }

func (t terminal) Write(p []byte) (int, error) {
	if err := t.d.flush(); err != nil {
		return 0, err
	}
	return sink(t).Write(p)
}

// moment is a time in a list. A terminal shows it relative to now.
type moment struct {
	at    time.Time
	text  string // the exact time
	exact bool   // a terminal shows both
}

func past(at time.Time) moment { return moment{at, shownTime(at), false} }

func due(at time.Time) moment { return moment{at, clock(at), true} }

// recent is how long relative times are shown.
const recent = 7 * 24 * time.Hour

// relative is a time as people say it; exact if it is not near.
func relative(now, at time.Time, exact string) string {
	switch since := now.Sub(at); {
	case at.IsZero() || since.Abs() > recent:
		return exact
	case since < -time.Minute:
		return "in " + strings.TrimSuffix(prompt.Ago(-since), " ago")
	default:
		return prompt.Ago(since)
	}
}

// state is a word in a list about how something is. A terminal shows those in colour that ask for attention.
type state string

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

func (s state) tone() string {
	switch s {
	case "failed", "not running", "timeout", "unreported", "refused", "interrupted", "expired", "missed", "unaccounted", "FAIL":
		return red
	case "skipped", "paused", "waiting", "running", "busy", "again", "unapproved", "off", "new", "changed", "dropped", "WARN":
		return yellow
	}
	return ""
}

type layout int

const (
	byStream   layout = iota // for a terminal if standard output is one, else columns separated by tabs
	aligned                  // aligned columns, with exact times
	onTerminal               // aligned columns under a header line
)

type table struct {
	d      *deps
	layout layout
	folds  bool // a terminal gets a line that it is too narrow for in several
	tones  bool
	header []string
	lines  [][]string // of an aligned table
	colour [][]string // of their cells
}

// table returns a table with these columns; "" for one without a header line.
func (d *deps) table(columns string) *table {
	t := &table{d: d, layout: d.layout, tones: d.colour(d.Stdout), header: strings.Fields(columns)}
	if t.layout == byStream && isTerminal(d.Stdout) {
		t.layout = onTerminal
		if columns != "" {
			d.page()
		}
	}
	return t
}

// row adds a record. A cell is a text, a moment or a state.
func (t *table) row(cells ...any) {
	line, colour := make([]string, len(cells)), make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case moment:
			line[i] = t.moment(c)
		case state:
			line[i], colour[i] = string(c), c.tone()
		case string:
			line[i] = c
		}
		line[i] = printable(line[i])
		if !t.tones {
			colour[i] = ""
		}
	}
	if t.layout != byStream {
		t.lines, t.colour = append(t.lines, line), append(t.colour, colour)
		return
	}
	for i := range line {
		line[i] = paint(line[i], colour[i])
	}
	t.write(strings.Join(line, "\t"))
}

func (t *table) moment(m moment) string {
	if t.layout != onTerminal {
		return m.text
	}
	said := relative(t.d.Now(), m.at, m.text)
	if m.exact && said != m.text {
		return m.text + " (" + said + ")"
	}
	return said
}

// short is a cell that a terminal shows with at most so many characters, where its line would be longer than 80 columns.
func (t *table) short(text string, most int) string {
	if t.layout != onTerminal {
		return text
	}
	return plaintext.Short(text, most)
}

func (t *table) end() {
	if len(t.lines) == 0 {
		return
	}
	if t.layout == onTerminal && len(t.header) > 0 {
		t.lines, t.colour = slices.Insert(t.lines, 0, t.header), slices.Insert(t.colour, 0, make([]string, len(t.header)))
	}
	var widths []int
	for _, line := range t.lines {
		for i, c := range line[:max(len(line)-1, 0)] { // nothing is aligned to the last one
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ui.Width(c))
		}
	}
	for n, line := range t.lines {
		if t.folds && t.layout == onTerminal && spread(line, widths) > terminalColumns {
			t.fold(line, t.colour[n])
			continue
		}
		var text strings.Builder
		for i, c := range line {
			text.WriteString(paint(c, t.colour[n][i]))
			if i < len(line)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-ui.Width(c)+2))
			}
		}
		t.write(strings.TrimRight(text.String(), " "))
	}
}

// spread is how many columns a line takes in an aligned table.
func spread(line []string, widths []int) (n int) {
	for i, c := range line {
		if n += 2 + ui.Width(c); i < len(line)-1 {
			n += widths[i] - ui.Width(c)
		}
	}
	return n - 2
}

// fold writes a line as several: a cell that does not fit begins a new one, below the second cell.
func (t *table) fold(line, colour []string) {
	indent := strings.Repeat(" ", ui.Width(line[0])+2)
	text, at := "", -2
	for i, c := range line {
		if c == "" {
			continue
		}
		if at+2+ui.Width(c) <= terminalColumns {
			if i > 0 {
				text += "  "
			}
			text, at = text+paint(c, colour[i]), at+2+ui.Width(c)
			continue
		}
		t.write(text)
		lines := strings.Split(strings.TrimSuffix(overview.Fold(c, terminalColumns-len(indent)), "\n"), "\n")
		for _, part := range lines[:len(lines)-1] {
			t.write(indent + part)
		}
		text = indent + paint(lines[len(lines)-1], colour[i])
		at = len(indent) + ui.Width(lines[len(lines)-1])
	}
	t.write(text)
}

// write writes a line. Its cells are printable, and colour must pass.
func (t *table) write(line string) {
	_, _ = io.WriteString(t.d.styled(), line+"\n") // a failed write shows when the output is flushed
}

// records writes a list under these columns, or with --json an object per line.
func records[T any](d *deps, columns string, list []T, cells func(T) []any) error {
	t := d.table(columns)
	for _, item := range list {
		if !d.json {
			t.row(cells(item)...)
		} else if err := d.emit(item); err != nil {
			return err
		}
	}
	t.end()
	return nil
}

func cellsOf(row []string) []any {
	cells := make([]any, len(row))
	for i, text := range row {
		cells[i] = text
	}
	return cells
}

func paint(text, colour string) string {
	if colour == "" {
		return text
	}
	return colour + text + plain
}
