package skill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/shell"
)

// Limits of dynamic commands.
const (
	eachLimit   = 10 * time.Second // time of one command
	allLimit    = 30 * time.Second // time of all commands of one skill
	outputLimit = 2000             // characters of one command's output
)

// reasonLimit is the longest reason in a marker, in characters, because a line of standard error can have any length.
const reasonLimit = 300

// placeholder stands for the arguments in a skill's text.
const placeholder = "$ARGUMENTS"

var (
	errEach = errors.New("one command took too long")
	errAll  = errors.New("the commands together took too long")
)

// Renderer runs the dynamic commands of skills.
type Renderer struct {
	Dir  string        // working directory of commands: the data directory
	Env  []string      // whole environment of commands, KEY=value
	Each time.Duration // time limit of one command; 0 is eachLimit
	All  time.Duration // time limit of all commands of one skill; 0 is allLimit
	Seal *seal.Seal    // seal of commands; nil: they are not sealed

	Run func(context.Context, process.Call) (process.Result, error) // nil is program.Run
}

// Render returns the skill's body with each command replaced by its output, without control characters and white space at the end, and
// with at most outputLimit characters. A command that fails is replaced by its error in brackets, so Render always succeeds. Commands run
// once each, one after the other. When ctx ends, the remaining ones do not run.
func (r Renderer) Render(ctx context.Context, s skillFile) string {
	r.Each, r.All = cmp.Or(r.Each, eachLimit), cmp.Or(r.All, allLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, r.All, errAll)
	defer cancel()
	var b strings.Builder
	for _, p := range split(s.Body) {
		switch p.kind {
		case plain:
			b.WriteString(p.text)
		case command:
			b.WriteString(r.output(ctx, p.text))
		case block:
			b.WriteString("[commands not run: a block of commands would need a shell; write single ones]")
		}
	}
	return defuse(b.String())
}

func (r Renderer) output(ctx context.Context, command string) string {
	words, err := shell.Words(command)
	if err != nil {
		return marker("not run", err.Error())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Each, errEach)
	defer cancel()
	run := r.Run
	if run == nil {
		run = process.Run
	}
	result, err := run(ctx, process.Call{Argv: words, Env: r.Env, Dir: r.Dir, Limit: outputLimit * utf8.UTFMax, Seal: r.Seal})
	said, cut := plaintext.First(trimEnd(plaintext.Lines(string(result.Out))), outputLimit)
	parts := []string{trimEnd(said), "", r.trouble(words[0], result, err)}
	if cut || result.Cut {
		parts[1] = "[output cut at 2,000 characters]"
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	// only the skill's author may write the placeholder, not a command
	return strings.ReplaceAll(strings.Join(parts, "\n"), placeholder, "$ ARGUMENTS")
}

// trouble returns the marker of a command that failed; "" if it succeeded.
func (r Renderer) trouble(name string, result process.Result, err error) string {
	switch {
	case errors.Is(err, errEach):
		return fmt.Sprintf("[command timed out after %s]", r.Each)
	case errors.Is(err, errAll):
		return fmt.Sprintf("[command not finished: the commands of a skill have %s together]", r.All)
	case errors.Is(err, process.ErrNotFound):
		return marker("not run", name+": not found in PATH") // the error has no details for the agent
	case err != nil:
		return marker("not run", err.Error())
	case result.Status != 0:
		said := strings.TrimSpace(result.Stderr)
		return marker("failed", result.End, said[strings.LastIndexByte(said, '\n')+1:])
	}
	return ""
}

// marker returns [command what: reasons], on one line.
func marker(what string, reasons ...string) string {
	text := "command " + what
	for _, reason := range reasons {
		if reason = plaintext.Short(plaintext.Line(reason), reasonLimit); reason != "" {
			text += ": " + reason
		}
	}
	return "[" + text + "]"
}

func trimEnd(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

// WithArguments inserts args into text that Render returned: at $ARGUMENTS or, if the text has no $ARGUMENTS and args is not empty, at
// the end. Commands never get the arguments, and no arguments are inserted into their output. The result contains no command either.
func WithArguments(rendered, args string) string {
	switch {
	case strings.Contains(rendered, placeholder):
		rendered = strings.ReplaceAll(rendered, placeholder, args)
	case strings.TrimSpace(args) != "":
		rendered += "\n\nARGUMENTS: " + args
	}
	return defuse(rendered)
}
