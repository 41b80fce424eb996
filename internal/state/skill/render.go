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

// The limits of dynamic commands.
const (
	eachLimit   = 10 * time.Second // for one command
	allLimit    = 30 * time.Second // for those of one skill together
	outputLimit = 2000             // of one command's output, in characters
)

// reasonLimit is the longest reason in a marker, in characters: a line of somebody's standard error can be any length.
const reasonLimit = 300

// placeholder stands for the arguments in a skill's text.
const placeholder = "$ARGUMENTS"

var (
	errEach = errors.New("one command took too long")
	errAll  = errors.New("the commands together took too long")
)

// Renderer runs the dynamic commands of skills.
type Renderer struct {
	Dir  string        // where commands run: the data directory
	Env  []string      // their whole environment, KEY=value
	Each time.Duration // for one command; 0 is eachLimit
	All  time.Duration // for those of one skill; 0 is allLimit
	Seal *seal.Seal    // of commands; nil: they are not sealed

	Run func(context.Context, process.Call) (process.Result, error) // nil is program.Run
}

// Render is the skill's body with each command replaced by what it printed: without control characters and white space at
// the end, at most outputLimit characters. What went wrong stands in its place, in brackets: a skill is always rendered.
// Commands run one after the other, each once. When ctx ends, the rest is not run.
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
	return strings.ReplaceAll(strings.Join(parts, "\n"), placeholder, "$ ARGUMENTS") // which only the skill's author may write
}

// trouble is the marker of a command that did not do its work; "" if it did.
func (r Renderer) trouble(name string, result process.Result, err error) string {
	switch {
	case errors.Is(err, errEach):
		return fmt.Sprintf("[command timed out after %s]", r.Each)
	case errors.Is(err, errAll):
		return fmt.Sprintf("[command not finished: the commands of a skill have %s together]", r.All)
	case errors.Is(err, process.ErrNotFound):
		return marker("not run", name+": not found in PATH") // which is nothing for the agent
	case err != nil:
		return marker("not run", err.Error())
	case result.Status != 0:
		said := strings.TrimSpace(result.Stderr)
		return marker("failed", result.End, said[strings.LastIndexByte(said, '\n')+1:])
	}
	return ""
}

// marker is [command what: reasons], on one line.
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

// WithArguments puts args into text that Render returned: for $ARGUMENTS, or at the end if it does not stand there and there
// are any. Commands never see them, and what commands printed takes none. The result holds no command either.
func WithArguments(rendered, args string) string {
	switch {
	case strings.Contains(rendered, placeholder):
		rendered = strings.ReplaceAll(rendered, placeholder, args)
	case strings.TrimSpace(args) != "":
		rendered += "\n\nARGUMENTS: " + args
	}
	return defuse(rendered)
}
