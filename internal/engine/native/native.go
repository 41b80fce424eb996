// Package native is the built-in engine. It needs no other program: it calls a model's API in a loop, with its own tools and with
// transcripts in plain JSONL. The model answers and its tools are used, until the model uses no more tools.
//
// A conversation that a killed process leaves behind can always be continued. A message is on disk before the next step begins, and
// synced before a tool with effects begins. When the session is continued, a tool use without a result gets an error that says it was
// interrupted. It is never run again.
package native

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Engine asks a model's service and runs the tools that the model uses.
type Engine struct {
	Sessions  transcript.Dir
	Objects   objects
	Service   Service
	Model     string // default model, an alias or an id; "" if there is none
	NoModel   error  // returned if there is no default and the request names no model
	Models    model.Table
	MaxTokens int                           // answer limit in tokens; 0 selects the model's own limit
	Tools     func(engine.Request) BuiltIns // returns the engine's own tools for one request
	Servers   func(engine.Request) Servers  // returns the MCP servers of one request; nil: there are none
	Agents    func() []engine.Subagent      // returns the subagents for Task besides the general one; nil: there are none
	Now       func() time.Time
	Locks     *lock.Table // see store.Disk
	Sleep     func(context.Context, time.Duration) error
	Random    io.Reader
}

// Service is the service of the models.
type Service struct {
	provider.Provider
	Name  string // name in the headers of transcripts
	Local bool   // the service runs on this machine and costs nothing
	NoPDF string // host of the service, if it does not accept PDF files

	Searches bool // asks the service with its web search, which the owner allows
}

// anthropic is the name of the service whose API is Anthropic's.
const anthropic = "anthropic"

// BuiltIns is the engine's own tools. The caller checks whether a tool may be used before it calls it.
type BuiltIns interface {
	List(names []string) []engine.Tool // returns the tools among names that exist
	Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult
}

// Servers is the tools of MCP servers for one request.
type Servers interface {
	List(ctx context.Context) []engine.Tool // starts servers whose tools are not known yet
	Known() []engine.Tool                   // returns the tools that are known without starting a server
	Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult
	Failures() map[string][]string // returns, by name, why servers could not be used since the last call
	Close()
}

// Run adds the prompt to the request's session, and lets the agent work until it uses no more tools.
func (e *Engine) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	t, err := e.begin(ctx, r, tools, sink)
	if err != nil {
		return engine.Result{}, err
	}
	defer t.talk.leave()
	files, err := t.shown()
	if err != nil {
		return engine.Result{}, err
	}
	if err := t.openServers(ctx); err != nil {
		return engine.Result{}, err
	}
	defer t.tools.servers.Close()
	if slices.Contains(r.Scope.BuiltIns, "Bash") {
		defer t.watchPrograms()()
	}
	before := 0
	if len(t.talk.entries) > 0 {
		before = t.size()
	}
	err = t.talk.say(r.Input.Prompt, files)
	if err == nil {
		err = sink(runlog.Event{Type: runlog.Session, Session: t.talk.id(), Parent: r.Session.Parent(), Model: t.how.model.ID, Context: before})
	}
	if err == nil {
		err = t.work(ctx)
	}
	result := engine.Result{Session: t.talk.id(), Text: t.final, Messages: t.talk.said, Usage: t.bill.usage, Cost: t.bill.cost}
	if err != nil {
		return result, errors.Join(err, t.talk.noteFull(), t.bill.close())
	}
	return result, sink(runlog.Event{Type: runlog.Result, Text: t.final})
}

// watchPrograms watches the turn's tool uses, those of subagents too. The returned function kills what the programs that were started left
// behind, in any process group. It reads the environment of every process of the machine, so in a sealed run it does that only if one was
// started. In another run a gate or a skill may have left some too.
func (t *turn) watchPrograms() (killLeft func()) {
	unsealed := t.request.Scope.Seal == nil // the end of a seal kills every program of the run
	started, sink := unsealed || len(t.request.Scope.Servers) > 0, t.sink
	t.sink = func(e runlog.Event) error {
		started = started || e.Type == runlog.ToolUse && t.tools.effect(e.Tool) == engine.Starts
		return sink(e)
	}
	return func() {
		if started {
			process.KillAll("OLLIM_RUN=" + t.request.Run.ID)
		}
	}
}

// Compact begins a session that holds a summary of the request's session and its last messages.
func (e *Engine) Compact(ctx context.Context, r engine.Request, instructions string, sink engine.Sink) (engine.Compaction, error) {
	if r.Session.ID == "" {
		return engine.Compaction{}, errors.New("no session to compact")
	}
	r.Session.Fork = false
	t, err := e.begin(ctx, r, nil, sink)
	if err != nil {
		return engine.Compaction{}, err
	}
	defer t.talk.leave()
	t.talk.entries = t.talk.history.header().Settled(t.talk.entries)
	return t.compact(ctx, instructions, t.keep(0))
}

// Plan returns the model and the tools that the request would use.
func (e *Engine) Plan(r engine.Request, tools engine.Tools) (engine.Plan, error) {
	m := e.model(r)
	p := engine.Plan{Model: m.ID, Window: m.Window}
	for _, tool := range e.toolbox(r, tools).offer() {
		p.Tools = append(p.Tools, tool.Name)
	}
	slices.Sort(p.Tools)
	switch {
	case p.Model == "":
		return p, e.NoModel
	case r.Session.ID == "":
		return p, nil
	case engine.Holder(r.Session.ID) != engine.Native:
		return p, engine.Foreign(r.Session.ID)
	}
	_, err := e.Sessions.Find(r.Session.ID)
	if errors.Is(err, transcript.ErrUnknown) {
		err = fmt.Errorf("%w: %s", engine.ErrSessionUnknown, r.Session.ID)
	}
	return p, err
}

// begin opens the request's session and prevents other processes from appending to it. The caller leaves the turn's conversation.
func (e *Engine) begin(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (*turn, error) {
	m := e.model(r)
	if m.ID == "" {
		return nil, e.NoModel
	}
	if r.Limits.MaxCost > 0 && !e.Service.Local && !m.Priced {
		return nil, engine.Unpriced(m.ID)
	}
	how := asking{model: m, thinking: r.Model.Thinking}
	if e.Service.Name == anthropic { // other APIs do not offer a choice
		how.model, how.cache = r.Session.Pace.Cheapest(m)
	}
	h, err := e.open(r)
	if err != nil {
		return nil, err
	}
	talk, err := enter(ctx, conversation{run: r.Run.ID, now: e.Now}, h, r.Session.Follow && !r.Session.Fork)
	if err != nil {
		return nil, err
	}
	r.Run.Locks = append(slices.Clone(r.Run.Locks), talk.files()...)
	t := &turn{
		e: e, request: r, sink: sink, tools: e.toolbox(r, tools), how: how, talk: talk,
		bill: &bill{model: how.model, limits: r.Limits, local: e.Service.Local, sink: sink, now: e.Now},
	}
	t.bill.full = t.full()
	return t, nil
}

func (e *Engine) model(r engine.Request) model.Model {
	return e.Models.Resolve(cmp.Or(r.Model.Name, e.Model))
}

func (e *Engine) toolbox(r engine.Request, agent engine.Tools) *toolbox {
	b := &toolbox{agent: agent, names: r.Scope.BuiltIns, servers: none{}, inner: e.inner(r)}
	if e.Tools != nil {
		b.own = e.Tools(r)
	}
	if e.Servers != nil && len(r.Scope.Servers) > 0 {
		b.servers = e.Servers(r)
	}
	return b
}

// header returns the header of a new session.
func (e *Engine) header(r engine.Request) (transcript.Header, error) {
	id, err := NewID(e.Random)
	return transcript.Header{ID: id, Cwd: r.Scope.Root, Provider: e.Service.Name, Model: e.model(r).ID, Timestamp: e.Now()}, err
}

// NewID returns the id of a new session. An error is that of random.
func NewID(random io.Reader) (string, error) {
	id := make([]byte, 6)
	_, err := io.ReadFull(random, id)
	return "n-" + hex.EncodeToString(id), err
}
