package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Engine plays one script. It serves one run at a time.
type Engine struct {
	Home   paths.Dir
	Script script
	Now    func() time.Time
	Sleep  func(context.Context, time.Duration) error

	refused map[int]int // how often each overloaded step has refused, by its identifier
}

// Run plays the next turn of the request's session.
func (e *Engine) Run(ctx context.Context, r engine.Request, tools engine.Tools, sink engine.Sink) (engine.Result, error) {
	s, err := e.enter(r.Session)
	if err != nil {
		return engine.Result{}, err
	}
	var messages []transcript.Message
	t := &turn{e: e, ctx: ctx, request: r, tools: tools, sink: sink.Collect(&messages), session: s}
	result, err := t.play()
	result.Messages = messages
	return result, err
}

// Plan returns the tools that the script may use.
func (e *Engine) Plan(r engine.Request, tools engine.Tools) (engine.Plan, error) {
	p := engine.Plan{Model: r.Model.Name, Tools: slices.Clone(r.Scope.BuiltIns)}
	for _, tool := range tools.List() {
		p.Tools = append(p.Tools, tool.Name)
	}
	slices.Sort(p.Tools)
	if r.Session.ID == "" {
		return p, nil
	}
	_, err := e.open(r.Session.ID)
	return p, err
}

func (e *Engine) enter(r engine.Session) (s *session, err error) {
	switch {
	case r.ID == "":
		s, err = e.begin("", 0, r.Kept())
	case r.Fork:
		if s, err = e.open(r.ID); err == nil {
			s, err = e.branch(s, r.Kept())
		}
	default:
		s, err = e.resume(r.ID)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range r.Messages {
		s.read(m)
	}
	return s, nil
}

// Compact begins a session that holds the script's summary.
func (e *Engine) Compact(_ context.Context, r engine.Request, instructions string, sink engine.Sink) (engine.Compaction, error) {
	s, err := e.resume(r.Session.ID)
	if err != nil {
		return engine.Compaction{}, err
	}
	_, c, err := e.compact(s, instructions)
	if err != nil {
		return c, err
	}
	return c, sink(compacted(s.id, c))
}

func compacted(old string, c engine.Compaction) runlog.Event {
	return runlog.Event{Type: runlog.Compacted, Session: c.Session, Parent: old, Text: c.Summary, Before: c.Before, After: c.After}
}

// turn is a turn that is being played.
type turn struct {
	e       *Engine
	ctx     context.Context
	request engine.Request
	tools   engine.Tools
	sink    engine.Sink
	session *session

	said  []message // the prompt, and the messages of the agent and its tools
	kept  int       // how many of said are in the session
	final string
	cost  float64
	calls int
}

func (t *turn) play() (engine.Result, error) {
	steps, number := t.e.Script.OnNudge, t.session.Turn
	if !t.request.Input.Nudge {
		steps = t.e.Script.Turns[min(number, len(t.e.Script.Turns)-1)]
		number++
	}
	opening := fmt.Sprintf("script engine, no model: turn %d", number)
	if n := len(t.request.Session.Messages); n > 0 {
		opening += ", after " + plaintext.Count(n, "message")
	}
	t.said = []message{{Role: transcript.User, Content: t.request.Input.Prompt, Aside: t.request.Input.Nudge}}
	err := t.sink(runlog.Event{Type: runlog.Session, Session: t.session.id, Parent: t.request.Session.Parent(), Text: opening})
	for _, step := range steps {
		if err != nil {
			break
		}
		if err = t.ctx.Err(); err == nil {
			err = t.step(step)
		}
	}
	context := t.session.Tokens + tokens(len(t.request.Input.Prompt))
	switch {
	case err == nil:
		err = t.keep(true)
	case t.again(err):
		err = errors.Join(err, t.session.drop())
	case t.kept > 0:
		err = errors.Join(err, t.keep(true, message{Role: transcript.Assistant, Content: transcript.CutOff}))
	}
	usage := runlog.Usage{In: context, Out: tokens(len(t.final))}
	result := engine.Result{Session: t.session.id, Text: t.final, Usage: usage, Cost: t.cost}
	if err == nil {
		err = t.sink(runlog.Event{Type: runlog.UsageEvent, Usage: &usage})
	}
	if err == nil {
		err = t.sink(runlog.Event{Type: runlog.Result, Text: t.final})
	}
	return result, err
}

// again reports whether the turn will be played again, because the service was overloaded before a tool was used. The messages of the
// turn are then not kept.
func (t *turn) again(err error) bool {
	var overloaded *engine.Overloaded
	return t.calls == 0 && errors.As(err, &overloaded)
}

// keep writes messages, and the prompt before them, into the session. It does so before their events: once a message was reported, the
// prompt counts as read, together with the updates in it.
func (t *turn) keep(ends bool, said ...message) error {
	t.said = append(t.said, said...)
	p := part{run: t.request.Run.ID, begins: t.kept == 0, ends: ends, messages: t.said[t.kept:]}
	t.kept = len(t.said)
	return t.session.write(p)
}

// says keeps messages and reports their event.
func (t *turn) says(e runlog.Event, said ...message) error {
	if err := t.keep(false, said...); err != nil {
		return err
	}
	return t.sink(e)
}

func (t *turn) step(s step) error {
	switch s.Do {
	case "expect":
		told := t.request.Input.Prompt
		if t.request.Input.SystemOnly { // the run's own system prompt holds the text that is the same in each fire
			told += "\n\n" + t.request.Input.System
		}
		if !strings.Contains(told, s.Text) {
			return fmt.Errorf("script: the prompt does not contain %q", s.Text)
		}
	case "think":
		return t.says(runlog.Event{Type: runlog.Thinking, Text: s.Text})
	case "text":
		t.final = s.Text
		return t.says(runlog.Event{Type: runlog.Text, Text: s.Text}, message{Role: "assistant", Content: s.Text})
	case "tool":
		return t.call(s)
	case "delay":
		return t.e.Sleep(t.ctx, s.Wait)
	case "touch":
		return t.touch(s.Text)
	case "compact":
		return t.compact(s.Text)
	case "cost":
		return t.spend(s.Cost)
	case "overloaded":
		return t.e.overloaded(s)
	case "error":
		return errors.New(s.Text)
	}
	return nil
}

// touch creates a file, and does not change an existing one. Like every tool it refuses a protected path.
func (t *turn) touch(path string) error {
	full, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for _, place := range t.request.Scope.Protected {
		if rel, err := filepath.Rel(place, full); err == nil && filepath.IsLocal(rel) {
			return fmt.Errorf("script: touch %s: it is protected", path)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func (t *turn) call(s step) error {
	t.calls++
	input := json.RawMessage("{}")
	if s.Input != nil {
		var err error
		if input, err = json.Marshal(s.Input); err != nil {
			return fmt.Errorf("script: input of %s: %w", s.Text, err)
		}
	}
	id := fmt.Sprintf("call-%d", t.calls)
	use := runlog.Event{Type: runlog.ToolUse, Tool: s.Text, ToolID: id, Input: input}
	if err := t.says(use, message{Role: "assistant", Content: s.Text + " " + string(input)}); err != nil {
		return err
	}
	answer := t.tools.Call(t.ctx, s.Text, input)
	result := runlog.Event{Type: runlog.ToolResult, Tool: s.Text, ToolID: id, Text: answer.Text, IsError: answer.IsError}
	return t.says(result, message{Role: "tool_result", Content: answer.Text})
}

// compact compacts in the middle of a turn without a request, as an engine with a model does when its window is full.
func (t *turn) compact(instructions string) error {
	next, c, err := t.e.compact(t.session, instructions)
	if err != nil {
		return err
	}
	old := t.session.id
	t.session, t.kept = next, 0
	return t.says(compacted(old, c))
}

func (t *turn) spend(usd float64) error {
	t.cost += usd
	if err := t.sink(runlog.Event{Type: runlog.UsageEvent, Cost: usd, Usage: &runlog.Usage{}}); err != nil {
		return err
	}
	return t.request.Limits.Affordable(t.cost)
}

func (e *Engine) overloaded(s step) error {
	if e.refused == nil {
		e.refused = map[int]int{}
	}
	if s.Times > 0 && e.refused[s.identifier] >= s.Times {
		return nil
	}
	e.refused[s.identifier]++
	return &engine.Overloaded{Reason: s.Text, After: s.Wait}
}
