// Package builtin implements the native engine's own tools: Read, Write, Edit, Glob, Grep, Bash and WebFetch, with the input
// that package policy judges. Each use is judged before it gets here. This package enforces what a verdict cannot, because a
// directory can be replaced after the verdict: files are opened from a root downwards, through plain directories only, none of
// them protected; the root must still be the directory that it was when the run began, and the path that is reached is judged
// again. Commands run without a shell. Web pages are fetched from public addresses only, as resolved when dialled.
//
// A result is text for the model. Its length is bounded, and it says what was omitted. An error is a result too. Read of an
// image or a PDF returns the file itself, for the model to see.
package builtin

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
)

// Box holds the tools of one run.
type Box struct {
	Roots     []policy.Root // the first root is the working directory: paths are relative to it, and commands run in it
	Allow     []policy.Pattern
	Protected []string          // absolute paths; nothing below them is read, written, listed or found
	Env       []string          // whole environment of commands
	Hold      []*os.File        // locks that commands inherit and keep while they live, unless they are sealed
	Seal      *seal.Seal        // seal of commands; nil: they are not sealed
	Hints     engine.Hints      // says what the seal has denied to a command; nil: nothing is said
	Shared    bool              // the umask decides the modes of new files and directories; otherwise only the owner has access
	Secrets   plaintext.Secrets // replaced in every result

	client  *http.Client // client of WebFetch; nil: one that connects to public addresses only
	writing sync.Mutex   // held by edits: of two edits of one file at once, one would be lost
	once    sync.Once
	pinned  pinned
}

// tool is one tool of the box.
type tool struct {
	name   string
	effect engine.Effect
	call   func(context.Context, *Box, json.RawMessage) (engine.ToolResult, error)
	schema string
}

//go:embed *.md
var descriptions embed.FS

func tools() []tool {
	const (
		text    = `{"type":"string"}`
		name    = text
		number  = `{"type":"integer"}`
		ordinal = `{"type":"integer","minimum":1}`
		flag    = `{"type":"boolean"}`
		mode    = `{"type":"string","enum":["files_with_matches","content","count"]}`
		timeout = `{"type":"integer","minimum":1,"maximum":600000}`
	)
	schema := engine.Schema
	return []tool{
		{"Read", engine.ReadsOnly, sees(callRead), schema(1, "file_path", name, "offset", ordinal, "limit", ordinal)},
		{"Write", engine.Changes, takes(callWrite), schema(2, "file_path", name, "content", text)},
		{"Edit", engine.Changes, takes(callEdit), schema(3, "file_path", name, "old_string", name, "new_string", text, "replace_all", flag)},
		{"Glob", engine.ReadsOnly, says(callGlob), schema(1, "pattern", name, "path", name)},
		{"Grep", engine.ReadsOnly, says(callGrep), schema(1, "pattern", name, "path", name, "glob", name, "type", text, "output_mode", mode,
			"-A", number, "-B", number, "-C", number, "-n", flag, "-i", flag, "-o", flag,
			"head_limit", number, "offset", number, "multiline", flag)},
		{"Bash", engine.Starts, takes(callBash), schema(1, "command", name, "timeout", timeout, "description", text)},
		{"WebFetch", engine.ReadsOnly, takes(callWebFetch), schema(1, "url", name, "prompt", text)},
	}
}

// List returns those of the named tools that the box has, always in the same order.
func (b *Box) List(names []string) []engine.Tool {
	var list []engine.Tool
	for _, t := range tools() {
		if slices.Contains(names, t.name) {
			description, _ := descriptions.ReadFile(strings.ToLower(t.name) + ".md") // each tool has a description
			list = append(list, engine.Tool{Name: t.name, Description: string(description), Schema: json.RawMessage(t.schema), Effect: t.effect})
		}
	}
	return list
}

// Call uses one tool. The caller has checked the policy.
func (b *Box) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	out, err := b.use(ctx, name, input)
	if err != nil {
		out = engine.ToolResult{Text: strings.TrimSpace(err.Error() + "\n" + out.Text), IsError: true}
	}
	out.Text = b.hide(clean(out.Text))
	return out
}

// hide replaces secrets, including pieces of secrets at the ends of cut lines.
func (b *Box) hide(text string) string {
	parts := strings.Split(text, lineCut)
	for i, part := range parts {
		parts[i] = b.Secrets.HideCut(part, false, i < len(parts)-1)
	}
	return strings.Join(parts, lineCut)
}

// use calls a tool. It may return text and an error, such as the output of a failed command.
func (b *Box) use(ctx context.Context, name string, input json.RawMessage) (engine.ToolResult, error) {
	list := tools()
	at := slices.IndexFunc(list, func(t tool) bool { return t.name == name })
	if at < 0 {
		return engine.ToolResult{}, fmt.Errorf("no tool %q", name)
	}
	if err := policy.CheckInput(name, input); err != nil {
		return engine.ToolResult{}, badInput(err)
	}
	if ctx.Err() != nil {
		return engine.ToolResult{}, context.Cause(ctx)
	}
	return list[at].call(ctx, b, input)
}

func badInput(err error) error { return fmt.Errorf("bad arguments: %w", err) }

// sees wraps a function with typed arguments as the call of a tool, and decodes its arguments.
func sees[T any](call func(context.Context, *Box, T) (engine.ToolResult, error)) func(context.Context, *Box, json.RawMessage) (engine.ToolResult, error) {
	return func(ctx context.Context, b *Box, input json.RawMessage) (engine.ToolResult, error) {
		var in T
		if err := decode(input, &in); err != nil {
			return engine.ToolResult{}, err
		}
		return call(ctx, b, in)
	}
}

// takes is sees for a function that returns text.
func takes[T any](call func(context.Context, *Box, T) (string, error)) func(context.Context, *Box, json.RawMessage) (engine.ToolResult, error) {
	return sees(says(call))
}

// says wraps a function that returns text as one that returns a result.
func says[T any](call func(context.Context, *Box, T) (string, error)) func(context.Context, *Box, T) (engine.ToolResult, error) {
	return func(ctx context.Context, b *Box, in T) (engine.ToolResult, error) {
		text, err := call(ctx, b, in)
		return engine.ToolResult{Text: text}, err
	}
}

// decode decodes an input whose fields were checked before.
func decode(input json.RawMessage, into any) error {
	if err := json.Unmarshal(input, into); err != nil {
		return badInput(err)
	}
	return nil
}

// count is a whole number of at least 0. Some models write it as 3.0.
type count int

func (c *count) UnmarshalJSON(data []byte) error {
	const most = 1e9
	f, err := strconv.ParseFloat(string(data), 64)
	if err != nil || f < 0 || f > most || f != math.Trunc(f) {
		return fmt.Errorf("%s: want a whole number, 0 or more", data)
	}
	*c = count(f)
	return nil
}

// clean makes text valid in a JSON string for every service.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// deadline is the time limit of a tool that reads files. A search of a huge tree or a dead disk would exceed it.
const deadline = time.Minute

var errSlow = errors.New("it took longer than a minute; name a smaller directory or file")

// soon returns when work returns or ctx ends. After the end of ctx, work continues until it notices, and its result is dropped.
func soon(ctx context.Context, work func(context.Context) (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	ctx, stop := context.WithTimeoutCause(ctx, deadline, errSlow)
	done := make(chan answer, 1)
	go func() {
		defer stop()
		text, err := work(ctx)
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		return a.text, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done: // work returned because ctx ended
		return a.text, a.err
	default:
		return "", context.Cause(ctx)
	}
}
