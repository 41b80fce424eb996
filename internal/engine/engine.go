// Package engine defines what all engines have in common. An engine takes a request, emits events of one form while the agent works,
// and returns a result. It knows nothing of routines, budgets or delivery; it is given the agent's tools.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Engine runs an agent.
type Engine interface {
	// Run lets the agent answer one prompt, with tools, until its turn ends. Events go to sink in order; an error of sink ends the
	// turn with that error. With an error the result is as complete as possible.
	Run(ctx context.Context, r Request, tools Tools, sink Sink) (Result, error)

	// Compact begins a new session with a summary of the request's session, made by the given instructions. The request is otherwise
	// that of the turn before, without a prompt. The old session is not changed.
	Compact(ctx context.Context, r Request, instructions string, sink Sink) (Compaction, error)

	// Plan returns what Run would offer the model for a request, and changes nothing. The error wraps ErrSessionUnknown if the engine
	// can tell that the request's session is gone, ErrForeignSession if it belongs to another engine.
	Plan(r Request, tools Tools) (Plan, error)
}

// Plan is what a request would offer the model.
type Plan struct {
	Model  string   // "" if the engine has none
	Window int      // of the model, in tokens, as far as the engine uses it; 0: see the table of models
	Tools  []string // names as the model sees them, sorted
}

// Sink receives events as they happen.
type Sink func(runlog.Event) error

// Result is how a turn ended.
type Result struct {
	Session  string               // id of the session as it is now
	Text     string               // the final text
	Messages []transcript.Message // the turn's messages after the prompt, without thoughts: answers, tool uses and their results
	Usage    runlog.Usage
	Cost     float64 // USD
}

// Compaction describes a compaction.
type Compaction struct {
	Session string // id of the new session
	Summary string
	Before  int // tokens of context
	After   int
}

// Tools is how an engine reaches the run that it works for, together with the processes that it starts: the tool server and the
// hooks. Nothing in them reads or writes the run's files.
type Tools interface {
	// List returns the agent's tools that the run may use.
	List() []Tool
	Call(ctx context.Context, name string, input json.RawMessage) ToolResult

	// Verdict decides one use of a tool and records the decision; a reason refuses it. Judged returns the ids of the uses that
	// were decided.
	Verdict(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error)
	Judged() (map[string]bool, error)

	// Within returns the tools as a subagent has them, which may use only what its own names and patterns allow as well; nil allows
	// all that the run may use.
	Within(names []string) Tools

	// Nudge returns what to tell the agent that is about to end its turn while it still owes something, and records it; "" if
	// it owes nothing or was reminded often enough.
	Nudge(ctx context.Context) (text string, err error)
}

// Tool describes a tool to an agent. Its effect is what an engine or a client must know about it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input
	Effect      Effect          `json:"-"` // the model is not told it
}

// Effect is what a use of a tool does besides its result.
type Effect int

// Effects of tools.
const (
	Changes   Effect = iota // it changes files or state; also the effect of a tool about which nothing is known
	ReadsOnly               // it changes nothing, so a crash may lose the use
	Reports                 // it adds a text for the owner to the ledger; after a power failure an agent that does not know may add it again
	Deletes                 // it deletes or ends something that cannot be restored
	Sends                   // it acts on the world outside the data directory
	Starts                  // it starts programs, which may do all of this
	Compacts                // it requests that the session be compacted by its property "instructions"; an engine may do that at once
)

// Schema returns the JSON Schema of an input, from the names and the types of its fields, of which the first are required. It does not
// say that there are no other fields, because every request would carry that for each tool; the tools say it when they are called.
func Schema(required int, fields ...string) string {
	var properties, names []string
	for field := range slices.Chunk(fields, 2) {
		names = append(names, strconv.Quote(field[0]))
		properties = append(properties, names[len(names)-1]+":"+field[1])
	}
	needs := ""
	if required > 0 {
		needs = `,"required":[` + strings.Join(names[:required], ",") + "]"
	}
	return `{"type":"object","properties":{` + strings.Join(properties, ",") + "}" + needs + "}"
}

// ToolResult is the answer of a tool.
type ToolResult struct {
	Text    string
	IsError bool
	Source  *transcript.Source // an image or a document that the model sees beside the text; may be nil

	More []*transcript.Source // further ones, which follow the results of all tools of one answer
}

// Errors that a caller acts on.
var (
	// ErrUnavailable: the engine or the service behind it cannot be reached or used.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrKey: the service refuses the key, the login or the account behind it. It is an ErrUnavailable.
	ErrKey = fmt.Errorf("%w", ErrUnavailable)
	// ErrNoKey: the engine has neither a key nor a login. It is an ErrKey.
	ErrNoKey = fmt.Errorf("%w: no key or login", ErrKey)
	// ErrSetup: the engine is not installed or configured so that it could be used: its program, its model, its directories. It is an
	// ErrUnavailable, and waiting does not help.
	ErrSetup = fmt.Errorf("%w", ErrUnavailable)
	// ErrModel: the service does not have the model, or refuses it to the account. It is an ErrSetup.
	ErrModel = fmt.Errorf("%w", ErrSetup)
	// ErrSessionUnknown: the session to continue does not exist any more.
	ErrSessionUnknown = errors.New("session unknown to the engine")
	// ErrForeignSession: the session belongs to another engine.
	ErrForeignSession = errors.New("session of another engine")
	// ErrMaxCost: the request's limit was reached.
	ErrMaxCost = errors.New("cost limit reached")
	// ErrMaxTurns: the turn did not end within the answers that the model may give.
	ErrMaxTurns = errors.New("turn limit reached")
)

// Unaffordable is an ErrMaxCost: the next request would exceed the request's limit. Amounts are in USD.
type Unaffordable struct{ Next, Spent, Most float64 }

func (e *Unaffordable) Error() string {
	return fmt.Sprintf("%v: the next request may cost %s USD, and %s of %s are spent", ErrMaxCost, USD(e.Next), USD(e.Spent), USD(e.Most))
}

func (*Unaffordable) Unwrap() error { return ErrMaxCost }

// Unpriced returns the error of a run with a cost limit whose model has no known price. It is an ErrSetup.
func Unpriced(model string) error {
	return fmt.Errorf("%w: the price of the model %s is unknown, so the cost limit cannot be enforced: ollim config "+
		"set models '%s in=USD out=USD' (per million tokens)", ErrSetup, model, model)
}

// Overloaded is a temporary refusal of the service: a rate limit or an overload.
type Overloaded struct {
	Reason string
	After  time.Duration // earliest time for a retry; 0 if the service gave none
}

func (e *Overloaded) Error() string {
	if e.After > 0 {
		return fmt.Sprintf("%s (retry after %s)", e.Reason, e.After)
	}
	return e.Reason
}
