package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// fail writes the one line of an error, and a hint when there is something to do.
func (d *Deps) fail(verb, object string, err error) {
	reason := err.Error()
	var pe *fs.PathError
	if errors.As(err, &pe) && reason == pe.Error() {
		reason = pe.Path + ": " + pe.Err.Error()
	}
	var faults yamldoc.Faults
	if errors.As(err, &faults) && len(faults) == 1 {
		reason = faults[0].Error()
	}
	d.line("error", join(verb, object, reason))
	var h *app.Hinted
	if errors.As(err, &h) {
		d.line("hint", "hint: "+h.Hint)
	}
}

func (d *Deps) warn(message string) { d.line("warning", "warning: "+message) }

// note tells on a terminal, and only there, what follows from a change.
func (d *Deps) note(format string, args ...any) {
	if !d.quiet && isTerminal(d.Stderr) {
		_, _ = fmt.Fprintf(d.Stderr, format+"\n", args...)
	}
}

// info is what --verbose adds.
func (d *Deps) info(format string, args ...any) {
	if d.verbose {
		d.line("info", fmt.Sprintf(format, args...))
	}
}

// line writes one line to standard error in the format that was asked for.
func (d *Deps) line(level, message string) {
	message = printable(strings.ReplaceAll(message, "\n", "; "))
	if d.logFormat == "json" {
		line, err := json.Marshal(map[string]string{
			"time": d.Now().Format(time.RFC3339), "level": level, "message": strings.TrimPrefix(message, level+": "),
		})
		if err == nil {
			_, _ = fmt.Fprintf(d.Stderr, "%s\n", line)
		}
		return
	}
	_, _ = fmt.Fprintf(d.Stderr, "ollim: %s\n", message)
}

func join(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return strings.Join(said, ": ")
}

// printable keeps a message on one line and its control characters off the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return plaintext.Rune(r)
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// clean writes to a terminal, without what could take it over.
type clean struct{ w io.Writer }

func (c clean) Write(p []byte) (int, error) {
	_, err := io.WriteString(c.w, plaintext.Lines(string(p)))
	return len(p), err
}

// Flush writes out what the writer below has buffered.
func (c clean) Flush() error {
	if w, ok := c.w.(flusher); ok {
		return w.Flush()
	}
	return nil
}

// terminal is standard output behind what is buffered: what was written to it has arrived.
type terminal struct{ d *Deps }

func (t terminal) Write(p []byte) (int, error) {
	if err := t.d.flush(); err != nil {
		return 0, err
	}
	return t.d.Stdout.Write(p)
}

// table writes records, one a line, columns separated by tabs; on a terminal they are aligned.
type table struct {
	d *Deps
	w *tabwriter.Writer
}

func (d *Deps) table() *table {
	t := &table{d: d}
	if isTerminal(d.Stdout) {
		t.w = tabwriter.NewWriter(d.Out, 0, 8, 2, ' ', 0)
	}
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	line := strings.Join(cells, "\t") + "\n"
	if t.w != nil {
		_, _ = t.w.Write([]byte(line))
		return
	}
	_, _ = t.d.Out.Write([]byte(line)) // a failed write shows when the output is flushed
}

func (t *table) end() {
	if t.w != nil {
		_ = t.w.Flush()
	}
}

// emit writes one object on one line.
func (d *Deps) emit(v any) error {
	e := json.NewEncoder(d.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// records writes a list in the form asked for.
func records[T any](d *Deps, asJSON bool, list []T, cells func(T) []string) error {
	if asJSON {
		for _, item := range list {
			if err := d.emit(item); err != nil {
				return err
			}
		}
		return nil
	}
	t := d.table()
	for _, item := range list {
		t.row(cells(item)...)
	}
	t.end()
	return nil
}
