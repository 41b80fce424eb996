package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/ui"
)

// fail writes the one line of an error, and a hint when there is something to do.
func (d *deps) fail(verb, object string, err error) {
	reason := err.Error()
	if pe, ok := errors.AsType[*fs.PathError](err); ok && reason == pe.Error() {
		reason = pe.Path + ": " + pe.Err.Error()
	}
	if faults, ok := errors.AsType[yamldoc.Faults](err); ok && len(faults) == 1 {
		reason = faults[0].Error()
	}
	d.line("error", join(verb, object, reason))
	if h, ok := errors.AsType[*app.Hinted](err); ok {
		d.line("hint", "hint: "+h.Hint)
	}
}

func (d *deps) warn(message string) { d.line("warning", "warning: "+message) }

// note prints what follows from a change, only on a terminal or at the prompt of chat.
func (d *deps) note(format string, args ...any) {
	if !d.quiet && (d.atPrompt || isTerminal(d.Stderr)) {
		_, _ = io.WriteString(d.talk(), ui.Fold(fmt.Sprintf(format, args...), ui.Columns(d.Stderr)))
	}
}

// tell is note for a text that ends with a command. If a line has no room for both, the command stands on its own line, and is not broken.
func (d *deps) tell(text, command string) {
	line := text + " " + command
	if ui.Width(line) > ui.Columns(d.Stderr) {
		line = text + " `" + command + "`"
	}
	d.note("%s", printable(line))
}

func (d *deps) info(format string, args ...any) {
	if d.verbose {
		d.line("info", fmt.Sprintf(format, args...))
	}
}

// line writes a message to standard error in the format that was asked for: one line, which is broken at the width of a terminal.
func (d *deps) line(level, message string) {
	message = printable(strings.ReplaceAll(message, "\n", "; "))
	if d.logFormat == "json" {
		line, _ := json.Marshal(map[string]string{ // texts: it cannot fail
			"time": d.Now().Format(time.RFC3339), "level": level, "message": strings.TrimPrefix(message, level+": "),
		})
		_, _ = fmt.Fprintf(d.talk(), "%s\n", line)
		return
	}
	if message = "ollim: " + message + "\n"; isTerminal(d.Stderr) {
		message = ui.Fold(message, ui.Columns(d.Stderr))
	}
	_, _ = io.WriteString(d.talk(), message)
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ": ")
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

// answer prints the result of a command, unless there is an error instead.
func (d *deps) answer(result any, err error) error {
	if err == nil {
		_, err = fmt.Fprintln(d.Out, result)
	}
	return err
}

func (d *deps) emit(v any) error {
	e := json.NewEncoder(d.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// newList makes a command without arguments that prints a list.
func newList[T any](d *deps, access map[string]string, use, short, columns string, list func(context.Context) ([]T, error), cells func(T) []any) *cobra.Command {
	return withJSON(d, command(access, use, short, func(cmd *cobra.Command, _ []string) error {
		items, err := list(cmd.Context())
		if err != nil {
			return err
		}
		return records(d, columns, items, cells)
	}), jsonLines)
}

// jsonLines is the help of --json of lists.
const jsonLines = "print one JSON object per line"

// withJSON gives a command the flag --json.
func withJSON(d *deps, cmd *cobra.Command, help string) *cobra.Command {
	cmd.Flags().BoolVar(&d.json, "json", false, help)
	return cmd
}

// warnBad warns of files that a list omits, because they cannot be read.
func (d *deps) warnBad(bad []error) {
	for _, err := range bad {
		d.warn(fmt.Sprintf("omitted: %v", err))
	}
}

// warnOmitted warns of things, such as lines of a file, that cannot be read, if there are any.
func (d *deps) warnOmitted(where string, n int, noun string) {
	if n > 0 {
		d.warn(fmt.Sprintf("%s: omitted %s that cannot be read", where, plaintext.Count(n, noun)))
	}
}
