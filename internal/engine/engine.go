// Package engine is what all engines have in common: a request goes in, events in one normal form come out while it runs,
// and a result at the end. An engine knows nothing of routines, budgets or delivery; the agent's tools are handed to it.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Engine runs an agent.
type Engine interface {
	// Run lets the agent answer one prompt, tools included, until its turn ends. Every event goes to sink in order; an
	// error of sink ends the run with that error. The result is as complete as can be also when the error is not nil.
	Run(ctx context.Context, r Request, tools Tools, sink Sink) (Result, error)

	// Compact begins a new session that holds a summary of the request's session, made by the given instructions; the
	// request is otherwise that of the turn before, without a prompt. The old session stays as it is.
	Compact(ctx context.Context, r Request, instructions string, sink Sink) (Compaction, error)

	// Plan says what Run would offer the model for a request, and changes nothing. ErrSessionUnknown where the engine can
	// tell that the request's session is gone, ErrForeignSession where it belongs to another engine.
	Plan(r Request, tools Tools) (Plan, error)

	// Forget removes a session that is not to be kept. A session that is gone is no error.
	Forget(session string) error
}

// Plan is what a request would offer the model.
type Plan struct {
	Model string   // "": the engine has none
	Tools []string // by the names that the model is shown, sorted
}

// Sink takes events as they happen.
type Sink func(runlog.Event) error

// Request is everything an engine needs to know.
type Request struct {
	Run      string    // id of the run
	Slot     time.Time // that it answers; zero: none
	Prompt   string
	System   string
	Alone    bool    // System is all that the agent is told; else it is added to what the engine tells it by itself
	Session  string  // to continue or to branch; "" begins one
	Fork     bool    // branch Session instead of continuing it
	Model    string  // "" is the engine's default
	Thinking string  // as in job files; "" is the engine's default
	MaxCost  float64 // USD for the whole run; 0 is no limit
	Spent    float64 // USD, by earlier turns of the run
	Likely   float64 // USD that were set aside at the run's start
	Root     string  // the working directory

	BuiltIns  []string      // the engine's own tools that some pattern of the run's policy needs
	Allow     []string      // patterns of the tool uses that the run's policy allows
	Protected []string      // absolute paths that no file tool may reach
	Hold      []*os.File    // locks that the engine's process keeps for as long as it lives
	Dirs      []policy.Root // folders outside Root that file tools may use as well, absolute
	Agent     *Agent        // to whom the task is delegated; nil: to nobody
	Follow    bool          // a session that was compacted meanwhile is gone on with where it went
	Patience  time.Duration // how long to wait for a service that refuses for now, in all; 0 is as long as the run may take
	Nudge     bool          // a reminder of something owed in the turn before, not a new turn
	Discard   bool          // no session is kept
	Again     time.Duration // after which the schedule goes on from the same beginning; 0 is not known
	MaxTurns  int           // answers of the model in this turn; 0 is the engine's own limit

	// Raise asks for what the run, Spent included, is about to have cost, in USD: it must be least, and may be most. It returns
	// how much it may be, which others then cannot spend, or an ErrMaxCost. nil: nothing but MaxCost limits the run.
	Raise func(ctx context.Context, least, most float64) (granted float64, err error)

	// Delta is given the agent's text as it arrives; nil where nobody watches. Its error ends the run.
	Delta   func(text string) error
	Awaited bool // a person waits for the answer
}

// Agent is a subagent that the engine offers to the agent.
type Agent struct {
	Name        string
	Description string
	Prompt      string   // its system prompt
	Model       string   // "" is the run's
	Tools       []string // of the engine's; nil: all that the run has, empty: none
}

// Result is how a turn ended.
type Result struct {
	Session string // the session as it is now
	Text    string // the final text
	Usage   runlog.Usage
	Cost    float64 // USD
}

// Compaction is what a compaction did.
type Compaction struct {
	Session string // the new one
	Summary string
	Before  int // tokens of context
	After   int
}

// Tools is the agent's toolbox, already reduced to what its run may use.
type Tools interface {
	List() []Tool
	Call(ctx context.Context, name string, input json.RawMessage) ToolResult
	// Verdict decides one use of a tool of the engine's own, and records that it did; a reason refuses it.
	Verdict(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error)
}

// Tool is one tool as an agent sees it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input
}

// ToolResult is what a tool answered.
type ToolResult struct {
	Text    string
	IsError bool
}

// Errors of engines that a caller acts on.
var (
	// ErrUnavailable: the engine or the service behind it cannot be reached or used.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrNoKey: the engine has neither a key nor a login. It is an ErrUnavailable.
	ErrNoKey = fmt.Errorf("%w: no key or login", ErrUnavailable)
	// ErrSessionUnknown: the session to continue is not there any more.
	ErrSessionUnknown = errors.New("session unknown to the engine")
	// ErrForeignSession: the session belongs to another engine.
	ErrForeignSession = errors.New("session of another engine")
	// ErrNoAgents: the engine cannot delegate to a subagent.
	ErrNoAgents = errors.New("this engine has no subagents")
	// ErrMaxCost: the request's limit was reached.
	ErrMaxCost = errors.New("cost limit reached")
	// ErrMaxTurns: the model did not come to an end in as many answers as it may give.
	ErrMaxTurns = errors.New("turn limit reached")
)

// Overloaded is a refusal that may pass: a rate limit or an overload.
type Overloaded struct {
	Reason string
	After  time.Duration // not before this; 0 when the service did not say
}

func (e *Overloaded) Error() string {
	if e.After > 0 {
		return fmt.Sprintf("%s (retry after %s)", e.Reason, e.After)
	}
	return e.Reason
}

// Env tells commands which run they work for, as entries of an environment.
func (r Request) Env() []string {
	env := []string{"OLLIM_RUN=" + r.Run}
	if !r.Slot.IsZero() {
		env = append(env, "OLLIM_SLOT="+r.Slot.UTC().Format(time.RFC3339))
	}
	return env
}

// Affordable is nil while something is left of what the run may cost, an ErrMaxCost else; more, in USD, was spent besides Spent.
func (r Request) Affordable(more float64) error {
	if spent := r.Spent + more; r.MaxCost > 0 && spent >= r.MaxCost {
		return fmt.Errorf("%w: %s of %s USD", ErrMaxCost, usd(spent), usd(r.MaxCost))
	}
	return nil
}

// usd has as many digits as small amounts need.
func usd(amount float64) string {
	if amount < 0.1 {
		return fmt.Sprintf("%.4f", amount)
	}
	return fmt.Sprintf("%.2f", amount)
}
