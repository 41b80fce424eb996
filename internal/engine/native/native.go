// Package native is an engine that needs no other program: a loop over a model's API, with tools of its own and transcripts
// as plain JSONL. Receive, say, act, until the model has no more to do.
//
// What a kill leaves is always a conversation that goes on: a message is on disk before the next step, and synced before a
// tool with effects begins. A tool use whose result is missing is answered, when the session is continued, with an error that
// says it was interrupted; it is never run again.
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
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Engine is a model's service, and the world that its agents work in.
type Engine struct {
	Sessions  string // folder of the transcripts
	Service   provider.Provider
	Provider  string                        // its name, for the headers of transcripts
	Local     bool                          // the service costs nothing: it runs on this machine
	Model     string                        // the default; an alias or an id; "" is none
	NoModel   error                         // where there is none and nobody names one
	Models    model.Table                   //
	MaxTokens int                           // of one answer; 0 is the model's most
	Tools     func(engine.Request) BuiltIns // the engine's own tools, as one request may use them
	Now       func() time.Time
	Locks     *lock.Table // as in store.Disk
	Sleep     func(context.Context, time.Duration) error
	Random    io.Reader
}

// BuiltIns is tools of the engine's own. Whether one may be used is asked before it is called.
type BuiltIns interface {
	List(names []string) []engine.Tool // those of the names that there are
	Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult
}

// mostTurns bounds the answers of the model in one turn of the conversation.
const mostTurns = 200

// Run says the prompt in the request's session and lets the agent work until it has no more to do.
func (e *Engine) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	t, err := e.begin(ctx, r, tools, sink)
	defer t.leave()
	if err != nil {
		return engine.Result{}, err
	}
	if slices.Contains(r.Scope.BuiltIns, "Bash") {
		defer process.KillAll("OLLIM_RUN=" + r.Run.ID) // what its commands left behind, in whatever group
	}
	err = t.say(r.Input.Prompt)
	if err == nil {
		err = sink(runlog.Event{Type: runlog.Session, Session: t.file.ID, Parent: r.Session.Parent(), Model: t.model.ID})
	}
	if err == nil {
		err = t.work(ctx)
	}
	result := engine.Result{Session: t.file.ID, Text: t.final, Usage: t.usage, Cost: t.cost}
	if err != nil {
		return result, errors.Join(err, t.noteFull(), t.freeOfCharge())
	}
	return result, sink(runlog.Event{Type: runlog.Result, Text: t.final})
}

// Compact begins a session that holds a summary of the request's session and its last messages.
func (e *Engine) Compact(ctx context.Context, r engine.Request, instructions string, sink engine.Sink) (engine.Compaction, error) {
	if r.Session.ID == "" {
		return engine.Compaction{}, errors.New("there is no session to compact")
	}
	r.Session.Fork = false
	t, err := e.begin(ctx, r, nil, sink)
	defer t.leave()
	if err != nil {
		return engine.Compaction{}, err
	}
	t.entries = t.file.Settled(t.entries)
	return t.compact(ctx, instructions, t.keep(0))
}

// Plan says which model is asked, and which tools it is offered.
func (e *Engine) Plan(r engine.Request, tools engine.Tools) (engine.Plan, error) {
	t := &turn{e: e, request: r, tools: tools, model: e.Models.Resolve(cmp.Or(r.Model.Name, e.Model))}
	p := engine.Plan{Model: t.model.ID}
	if e.Tools != nil {
		t.own = e.Tools(r)
	}
	for _, tool := range t.offer() {
		p.Tools = append(p.Tools, tool.Name)
	}
	slices.Sort(p.Tools)
	switch {
	case t.model.ID == "":
		return p, e.NoModel
	case r.Session.ID == "":
		return p, nil
	case engine.Holder(r.Session.ID) != engine.Native:
		return p, engine.Foreign(r.Session.ID)
	}
	_, err := transcript.Find(e.Sessions, r.Session.ID)
	if errors.Is(err, transcript.ErrUnknown) {
		err = fmt.Errorf("%w: %s", engine.ErrSessionUnknown, r.Session.ID)
	}
	return p, err
}

// begin opens the transcript of the request's session, or begins one, and keeps others from writing it until leave.
func (e *Engine) begin(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (*turn, error) {
	m := e.Models.Resolve(cmp.Or(r.Model.Name, e.Model))
	t := &turn{e: e, request: r, tools: tools, sink: sink, model: m}
	if m.ID == "" {
		return t, e.NoModel
	}
	if r.Limits.MaxCost > 0 && !e.Local && !m.Priced {
		return t, fmt.Errorf("%w: no price is known of the model %s, so the limit on the cost cannot be kept: "+
			"ollim config set models '%s in=USD out=USD' (per million tokens)", engine.ErrUnavailable, m.ID, m.ID)
	}
	// A cache that lasts some minutes is gone by then, and one that lasts an hour is not. Only Anthropic's API can be asked for it.
	if hourly, pays := m.Hourly(); pays && e.Provider == "anthropic" && r.Session.NextIn >= 5*time.Minute && r.Session.NextIn <= time.Hour {
		t.model, t.hour = hourly, true
	}
	file, err := e.open(r)
	if err != nil {
		return t, err
	}
	if err := t.enter(ctx, file, r.Session.ID == "" || r.Session.Fork); err != nil {
		return t, err
	}
	if r.Session.Follow && !r.Session.Fork {
		err = t.follow(ctx)
	}
	if err != nil {
		return t, err
	}
	if e.Tools != nil {
		r.Run.Locks = append(slices.Clone(r.Run.Locks), t.guards[len(t.guards)-1].File())
		t.own = e.Tools(r)
	}
	t.entries, err = t.file.Load(nil)
	return t, err
}

// follow goes where the session has gone by compactions, also by one that happened while we waited for it.
func (t *turn) follow(ctx context.Context) error {
	for {
		next, err := transcript.Successor(t.file)
		if errors.Is(err, transcript.ErrUnknown) {
			return nil
		}
		if err == nil {
			err = t.enter(ctx, next, false)
		}
		if err != nil {
			return err
		}
	}
}

// open finds the transcript to go on with, or begins it.
func (e *Engine) open(r engine.Request) (transcript.Transcript, error) {
	if r.Session.ID != "" {
		return e.resume(r)
	}
	h, err := e.header(r)
	if err != nil {
		return transcript.Transcript{}, err
	}
	return transcript.Create(e.Sessions, h)
}

// resume finds the session, or makes a branch of it.
func (e *Engine) resume(r engine.Request) (transcript.Transcript, error) {
	file, err := transcript.Find(e.Sessions, r.Session.ID)
	switch {
	case errors.Is(err, transcript.ErrUnknown) && engine.Holder(r.Session.ID) != engine.Native, err == nil && engine.HolderOf(file.Header) != engine.Native:
		return file, engine.Foreign(r.Session.ID)
	case errors.Is(err, transcript.ErrUnknown):
		return file, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, r.Session.ID)
	}
	if err != nil || !r.Session.Fork {
		return file, err
	}
	for r.Session.Follow {
		next, err := transcript.Successor(file)
		if errors.Is(err, transcript.ErrUnknown) {
			break
		}
		if err != nil {
			return file, err
		}
		file = next
	}
	h, err := e.header(r)
	if err != nil {
		return file, err
	}
	return transcript.Branch(e.Sessions, file, -1, h)
}

// header is that of a new session.
func (e *Engine) header(r engine.Request) (transcript.Header, error) {
	id, err := NewID(e.Random)
	return transcript.Header{
		ID: id, Cwd: r.Scope.Root, Provider: e.Provider, Model: e.Models.Resolve(cmp.Or(r.Model.Name, e.Model)).ID, Timestamp: e.Now(),
	}, err
}

// Forget removes the transcript of a session.
func (e *Engine) Forget(session string) error {
	file, err := transcript.Find(e.Sessions, session)
	if errors.Is(err, transcript.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return store.Remove(file.Path)
}

// NewID is the id of a new session. The error is random's.
func NewID(random io.Reader) (string, error) {
	id := make([]byte, 6)
	_, err := io.ReadFull(random, id)
	return "n-" + hex.EncodeToString(id), err
}
