// Package claudecode runs the `claude` command as an engine: one child process for each turn, with the prompt on standard input and
// events on standard output. Three mechanisms restrict it: it is offered only the built-in tools that it needs, its settings deny
// protected paths, and a hook of ollim decides every tool use. When it has ended, the verdicts are compared with its tool uses.
package claudecode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Engine is the command and its configuration. With Env and Home alone it can read the sessions that the command keeps.
type Engine struct {
	Command string        // absolute path of claude
	Self    string        // absolute path of ollim, for the tool server and the hooks
	Args    []string      // arguments of Self before the verb, such as --data-dir
	Env     []string      // the whole environment, as KEY=value; nothing is inherited
	Home    paths.Dir     // holds the files of a run, and the sessions that sealed processes begin
	Grace   time.Duration // time for each step of a stop, see stop
	Secrets []string      // names of the variables in Env that are secrets
	Sought  string        // places where a key was looked for, for an error message
	Models  model.Table
	Effort  string        // low, medium, high, xhigh or max
	Direct  bool          // the command connects to the service itself: no gateway is between them
	Idle    time.Duration // longest wait for the next byte of an answer; 0: by the time that the run has left, see silence
	Disk    store.Disk

	// Located are the variables by which ollim finds its secrets. Those in Env may name other places, and the command passes few
	// variables to its MCP servers.
	Located map[string]string

	through bool // the keys in Env are placeholders, which a gateway replaces

	// AskServers finds out the tools of the request's MCP servers, and returns why servers cannot be used; nil: there are no servers.
	AskServers func(context.Context, engine.Request) map[string][]string
}

// Plan returns what the command is given: the model, its own tools, the tools of ollim's server, and the patterns of other servers'
// tools.
func (e *Engine) Plan(r engine.Request, tools engine.Tools) (engine.Plan, error) {
	p := engine.Plan{Model: e.model(r), Tools: slices.Clone(r.Scope.BuiltIns)}
	p.Window = e.window(p.Model)
	for _, tool := range tools.List() {
		p.Tools = append(p.Tools, "mcp__"+server+"__"+tool.Name)
	}
	p.Tools = append(p.Tools, r.Scope.Servers...)
	slices.Sort(p.Tools)
	err := own(r.Session.ID)
	if err == nil && r.Session.Fork && len(e.transcripts(r.Session.ID)) == 0 {
		err = fmt.Errorf("%w: %s", engine.ErrSessionUnknown, r.Session.ID)
	}
	return p, err
}

// window returns how much of a model's window is used: 200,000 tokens, even if the service allows more, unless the name ends in [1m]. The
// command has this limit by default (2.1.197), later versions by a flag.
func (e *Engine) window(name string) int {
	name, long := strings.CutSuffix(name, "[1m]")
	window := e.Models.Resolve(name).Window
	if !long {
		window = min(window, 200_000)
	}
	return window
}

// cache returns how long the command asks the service to cache the conversation. A login pays no price for tokens. A variable that the
// owner has set takes precedence.
func (e *Engine) cache(r engine.Request) engine.Cache {
	if e.variable("ANTHROPIC_API_KEY") == "" {
		return engine.CacheMinutes
	}
	for _, name := range []string{"ENABLE_PROMPT_CACHING_1H", "FORCE_PROMPT_CACHING_5M", "DISABLE_PROMPT_CACHING"} {
		if e.variable(name) != "" {
			return engine.CacheMinutes
		}
	}
	_, life := r.Session.Pace.Cheapest(e.Models.Resolve(withoutWindow(e.model(r))))
	return life
}

// leastCompact is the smallest number of tokens that the command's flag accepts.
const leastCompact = 100_000

// compactAt returns the length, in tokens, at which the command is told to compact the request's session; 0 if its version lacks the
// flag.
func (e *Engine) compactAt(r engine.Request, known Known) int {
	if !known.has(flagAutoCompact) {
		return 0
	}
	name := e.model(r)
	at := e.window(name)
	if !r.Session.Fork && r.Session.Kept() {
		at = min(at, max(leastCompact, r.Session.Full.At(e.Models.Resolve(withoutWindow(name)), at)))
	}
	return at
}

// withoutWindow returns the name of a model without a window at its end, as in claude-opus-4-8[1m].
func withoutWindow(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name
}

// Run starts or continues a session with one prompt.
func (e *Engine) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	if err := own(r.Session.ID); err != nil {
		return engine.Result{}, err
	}
	in, err := e.input(r)
	if err != nil {
		return engine.Result{}, err
	}
	known, err := e.Contract(ctx)
	if err != nil {
		return engine.Result{}, err
	}
	id := r.Session.ID
	if r.Session.Begins() {
		id = newUUID()
	}
	from := anew(id)
	if r.Session.ID != "" {
		if from, err = e.resume(known, r.Session.ID, id, r.Session.Fork); err != nil {
			return engine.Result{}, err
		}
	}
	t := &turn{
		want: wanted{session: id, parent: r.Session.Parent(), length: from.past.tokens, settings: inForce(r.Run.ID), window: e.window(e.model(r)), compactAt: e.compactAt(r, known), effort: e.Effort, subagent: r.Scope.Subagent},
		cost: e.costs(r, from.past), delta: r.Input.Delta,
	}
	t.sink = sink.Collect(&t.result.Messages)
	from.args = slices.Concat(from.args, options(r), in.flags())
	if unkept(r.Session) {
		defer e.forget(ctx, id)
	}
	if err := e.start(ctx, r, known, from, in, t); err != nil {
		if errors.Is(err, engine.ErrNoKey) {
			err = fmt.Errorf("%w: %s", err, e.Sought)
		}
		return t.result, err
	}
	if err := e.check(r, tools, t); err != nil {
		return t.result, err
	}
	return t.result, sink(runlog.Event{Type: runlog.Result, Text: t.result.Text})
}

// Compact forks the session and compacts the fork, so that the old session is not changed.
func (e *Engine) Compact(ctx context.Context, r engine.Request, instructions string, sink engine.Sink) (engine.Compaction, error) {
	if err := own(r.Session.ID); err != nil {
		return engine.Compaction{}, err
	}
	known, err := e.Contract(ctx)
	if err != nil {
		return engine.Compaction{}, err
	}
	id := newUUID()
	from, err := e.resume(known, r.Session.ID, id, false)
	if err != nil {
		return engine.Compaction{}, err
	}
	t := &turn{
		sink: sink, want: wanted{session: id, settings: inForce(r.Run.ID), serverless: true}, cost: e.costs(r, from.past), compaction: compaction{of: r.Session.ID},
	}
	prompt := "/compact " + strings.Join(strings.Fields(instructions), " ") // a slash command is one line
	if err := e.start(ctx, r, known, from, input{text: prompt}, t); err != nil {
		e.forget(ctx, id)
		return engine.Compaction{}, err
	}
	if t.compaction.made == nil {
		e.forget(ctx, id)
		return engine.Compaction{}, fmt.Errorf("compaction failed: %s", firstLine(orElse(t.compaction.failure, t.result.Text, "no summary was made")))
	}
	if !e.saved(id) {
		return engine.Compaction{}, errUnsaved
	}
	c := *t.compaction.made
	return c, sink(runlog.Event{
		Type: runlog.Compacted, Session: id, Parent: r.Session.ID, Text: c.Summary, Before: c.Before, After: c.After,
	})
}

// own returns an error for a session of another engine. The ids of this engine are UUIDs, those of other engines are not.
func own(id string) error {
	if id == "" || engine.Holder(id) == engine.ClaudeCode {
		return nil
	}
	return engine.Foreign(id)
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// text returns a prompt in a form that the command reads as text. A leading slash would begin a slash command.
func text(prompt string) string {
	if strings.HasPrefix(prompt, "/") {
		return " " + prompt
	}
	return prompt
}

var errUnsaved = errors.New("the session was not saved: claude could not write to its configuration directory")

// check compares the tool uses with the verdicts, and returns an error if the session was not saved.
func (e *Engine) check(r engine.Request, tools engine.Tools, t *turn) error {
	judged, err := tools.Judged()
	if err != nil {
		return err
	}
	denied := ""
	for _, use := range t.uses {
		switch {
		case judged[use.id]:
			denied = "" // the hook worked again after the denial
		case use.done: // a failed use needs no verdict: the command rejects unknown tools and invalid arguments before the hook
			return fmt.Errorf("the tool %s was used without a verdict of the hook: %s cannot be started by the engine", use.name, e.Self)
		case use.unheard:
			denied = use.name
		}
	}
	if denied != "" {
		return fmt.Errorf("the tool %s was denied without a verdict: the hook, %s, fails or cannot be started", denied, e.Self)
	}
	if !unkept(r.Session) && !e.saved(t.result.Session) {
		return errUnsaved
	}
	return nil
}

// unkept reports whether a turn leaves no session behind.
func unkept(s engine.Session) bool { return s.Begins() && !s.Kept() }

// forget removes the files of a session that is not kept.
func (e *Engine) forget(ctx context.Context, id string) {
	for _, path := range e.transcripts(id) {
		_ = os.Remove(path) // an error is ignored: nothing refers to the file
	}
	_ = store.Discard(ctx, e.config(id))
}

// saved reports whether a session's transcript is on disk. The command prints nothing if it could not write it.
func (e *Engine) saved(id string) bool { return len(e.transcripts(id)) > 0 }

func (e *Engine) variable(name string) string { return variable(e.Env, name) }

// variable returns the value of a variable. If there are several, the last one counts.
func variable(env []string, name string) (value string) {
	for _, entry := range env {
		if key, v, _ := strings.Cut(entry, "="); key == name {
			value = v
		}
	}
	return value
}

func orElse(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}
