package cli

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/ui"
)

// This file decides what a terminal gets that a pipe or file does not: lists aligned under a header line, times relative to now,
// colour, a pager, and the progress of a run. Which records and columns there are does not depend on the terminal.

func isTerminal(stream any) bool { return ui.IsTerminal(stream) }

// colour reports whether a stream gets colour.
func (d *deps) colour(stream any) bool { return ui.Coloured(stream, d.Lookup) }

// dumb reports whether the terminal may have no control sequences.
func (d *deps) dumb() bool { return ui.Dumb(d.Lookup) }

// talk returns standard error. Its text appears above the status line, or in the pager while one runs.
func (d *deps) talk() io.Writer {
	switch {
	case d.pager.Running() && isTerminal(d.Stderr):
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
	case s.d.pager.Pages():
		return s.d.pager.Write(p)
	case s.d.screen != nil && sameTerminal(s.d.Stdout, s.d.Stderr):
		return s.d.screen.Write(p)
	}
	return s.d.Stdout.Write(p)
}

// clean writes to a terminal without control characters.
type clean struct{ w io.Writer }

func (c clean) Write(p []byte) (int, error) {
	_, err := io.WriteString(c.w, plaintext.Lines(string(p)))
	return len(p), err
}

// styled is standard output for text that is clean except for its own colour and attributes.
func (d *deps) styled() io.Writer {
	if c, ok := d.Out.(clean); ok {
		return c.w
	}
	return d.Out
}

func (c clean) Flush() error { return flush(c.w) }

// terminal is unbuffered standard output: each write is flushed.
type terminal struct{ d *deps }

func (t terminal) Write(p []byte) (int, error) {
	if err := t.d.flush(); err != nil {
		return 0, err
	}
	return sink(t).Write(p)
}

// flow returns a text that an agent read or wrote, with its lines broken at words for a terminal, and indented by at least indent
// columns where they go on. Pipes and files get the text as it is.
func (d *deps) flow(text string, indent int) string {
	if !isTerminal(d.Stdout) {
		return text
	}
	return ui.Flow(plaintext.Lines(text), ui.Columns(d.Stdout), indent)
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

// relative returns a time relative to now; exact if it is more than seven days away.
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

// state is a state in a list. A terminal shows states that need attention in colour.
type state string

// figure is a number of tokens in a list, which a narrow terminal shows in thousands; 0 is not known.
type figure int

func (f figure) String() string {
	if f == 0 {
		return ""
	}
	return strconv.Itoa(int(f))
}

// short is the number in thousands; "" if it is small.
func (f figure) short() string {
	if f < 10_000 {
		return ""
	}
	return plaintext.Thousands(int(f))
}

// brief is a name in a list, which a narrow terminal shows shortened.
type brief string

// prose is a text in a list, which a narrow terminal shows in several lines.
type prose string

// remedy is what to do about a record. A terminal shows it below.
type remedy string

func (s state) tone() string {
	switch s {
	case "failed", "not running", "timeout", "unreported", "refused", "interrupted", "expired", "missed", "overdue", "unaccounted", "FAIL":
		return ui.Red
	case "skipped", "paused", "waiting", "running", "busy", "again", "unapproved", "off", "new", "changed", "dropped", "WARN":
		return ui.Yellow
	}
	return ""
}

// marked is a state with marks beside it.
type marked struct {
	state
	marks string
}

// mark adds marks to the columns of a state and of its reason. A terminal shows them beside the state; elsewhere, where programs
// read the state, they end the reason.
func (t *table) mark(s state, marks, reason string) (marked, string) {
	if t.layout == onTerminal {
		return marked{s, marks}, reason
	}
	return marked{s, ""}, strings.Join(slices.DeleteFunc([]string{reason, marks}, func(part string) bool { return part == "" }), "; ")
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
	tones  bool
	shown  ui.Table
}

// table returns a table with these columns; "" for one without a header line.
func (d *deps) table(columns string) *table {
	t := &table{d: d, layout: d.layout, tones: d.colour(d.Stdout)}
	if t.layout != byStream || !isTerminal(d.Stdout) {
		return t
	}
	t.layout, t.shown.Width = onTerminal, ui.Columns(d.Stdout)
	if columns != "" {
		t.shown.Header = strings.Fields(columns)
		d.pager.Page()
	}
	return t
}

// row adds a record. A cell is a string, which is never shortened, or of a type that says how it is shown.
func (t *table) row(cells ...any) {
	line := make([]ui.Cell, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case moment:
			line[i].Text, line[i].Short = t.moment(c)
		case state:
			line[i].Text, line[i].Colour = string(c), c.tone()
		case marked:
			if line[i].Text, line[i].Colour = string(c.state), c.tone(); c.marks != "" {
				line[i].Text, line[i].Colour = string(c.state)+", "+c.marks, cmp.Or(c.tone(), ui.Yellow)
			}
		case figure:
			line[i].Text, line[i].Short = c.String(), c.short()
		case brief:
			line[i].Text, line[i].Fit = string(c), ui.Brief
		case prose:
			line[i].Text, line[i].Fit = string(c), ui.Prose
		case remedy:
			line[i].Text, line[i].Fit = string(c), ui.Below
		case string:
			line[i].Text = c
		}
		line[i].Text = printable(line[i].Text)
		if !t.tones {
			line[i].Colour = ""
		}
	}
	if t.layout != byStream {
		t.shown.Add(line...)
		return
	}
	texts := make([]string, len(line))
	for i, c := range line {
		texts[i] = ui.Paint(c.Text, c.Colour)
	}
	t.write(strings.Join(texts, "\t"))
}

// moment returns a time as it is shown, and for a narrow terminal.
func (t *table) moment(m moment) (text, short string) {
	if t.layout != onTerminal {
		return m.text, ""
	}
	said := relative(t.d.Now(), m.at, m.text)
	if m.exact && said != m.text {
		return m.text + " (" + said + ")", m.text
	}
	return said, brieflyAgo(said)
}

// brieflyAgo returns a relative time such as "12 minutes ago" as "12m ago"; "" if it is none.
func brieflyAgo(said string) string {
	if words := strings.Fields(said); len(words) == 3 && words[2] == "ago" {
		return words[0] + words[1][:1] + " ago"
	}
	return ""
}

// end writes the aligned lines.
func (t *table) end() {
	for _, line := range t.shown.Lines() {
		t.write(line)
	}
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

// facts writes what is known of one thing: a key and a value on each line, without those that have no value.
func (d *deps) facts(rows ...[]string) error {
	return records(d, "", slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" }), cellsOf)
}

func cellsOf(row []string) []any {
	cells := make([]any, len(row))
	for i, text := range row {
		cells[i] = text
	}
	return cells
}
