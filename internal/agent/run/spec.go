package run

import (
	"context"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Spec describes one run: its identity, input, conversation, engine, rights and limits.
type Spec struct {
	Identity     Identity
	Input        prompt.Input // without what Run adds: the time, updates, the ping budget
	Conversation conversation.Conversation
	Engine       Choice
	Policy       Rights
	Limits       Limits
	Duties       []Duty        // what must hold before the run may end
	Origin       origin        // what asked for the run
	Sender       outbox.Sender // sends messages to the owner; nil: as configured
	Observe      Observer
	Plain        bool   // no engine runs: the body of the task itself is sent to the owner
	Compact      string // if set, there is no turn: the session is compacted by these instructions
}

// Identity names the run in tags, locks and the record.
type Identity struct {
	runlog.Subject             // an empty Name stands for the id
	Run            string      // its id; "": a new one
	Queued         bool        // the request waits until it can run, so a pause or a limit leaves no record
	Again          bool        // run Run waits and is continued in its existing record; see Origin.Begin
	Scheduled      time.Time   // the time that the run is for; zero: none
	Guard          *lock.Guard // of the job, which the engine inherits and Run releases; nil: none
}

// Choice selects the engine and the model.
type Choice struct {
	Name       string // of the engine; "" is an error that tells the owner to configure one
	Model      string // "" is the engine's default
	Thinking   string // as in job files
	Moved      bool   // the clock is not the real one
	Transcribe bool   // the conversation is kept as a transcript whatever engine holds it
}

// Rights are what the agent may use, and where its text goes.
type Rights struct {
	System    string   // the system prompt; "": that of a background run that works alone, made of its task
	Tools     []string // the patterns in force
	Offered   []string // more patterns whose tools the model is shown; what is not in force is refused when called
	Root      string   // the working directory; "" is the data directory
	Dirs      []policy.Root
	Seal      SealWish
	AllowPing bool
	Update    job.UpdateMode
	Mode      policy.Mode // for what no pattern allows; "" is dontAsk
	Owner     bool        // the owner typed it: its cost is counted, but no limit or pause applies
	Awaited   bool        // a person waits for the answer
	Deliver   bool        // the final text is sent to the owner
}

// Limits bound the run. A zero is no limit of its own.
type Limits struct {
	Time     time.Duration
	Cost     float64       // USD
	Turns    int           // answers of the model
	Patience time.Duration // for a service that refuses for now, in all; 0: as long as the run may take
	Typed    bool          // the owner typed Cost: it replaces the configured limit of a run
	Again    time.Duration // time until the next slot begins from the same session; 0 is not known
}

// Observer sees a turn as it happens. Its functions may be nil.
type Observer struct {
	Event func(runlog.Event)
	Text  func(text string) error // is given the agent's text as it arrives; its error ends the run

	// Permit asks the owner whether the agent may use a tool as Event says, whose Text is the pattern that would allow it. It
	// returns when the owner has answered, or ctx ends. nil: nobody can be asked.
	Permit func(ctx context.Context, use runlog.Event) bool
}

// Duty enforces something that must hold before a run may end. It may let the agent take another turn.
type Duty func(ctx context.Context, set *tools.Set, t *conversation.Turn) error

// origin is what asked for a run: a job's fire, the owner at a shell. Run calls its methods in this order.
type origin interface {
	// Begin completes the record before it is written. For a run that continues it replaces the whole record.
	Begin(r *runlog.Record) error

	// Permit returns a *Refusal if the run may not take place.
	Permit() error

	// Prepare returns the input of the turn. It does what must be done before the turn. Money is reserved by then.
	Prepare(ctx context.Context, set *tools.Set, in prompt.Input) (prompt.Input, error)

	// Complete completes the engine's request, when the conversation's turn has come.
	Complete(r *engine.Request) error

	// Postpone takes back what the origin did for a run that could not take place because of other runs' reservations.
	Postpone(ctx context.Context, r *runlog.Run, later *Later) error

	// Report reports how the run ended to the owner or the main conversation, before its text is delivered.
	Report(ctx context.Context, r *runlog.Run, cause error)

	// End does what else follows from how the run ended. The record is not finished yet; nothing changes the outcome any more.
	End(ctx context.Context, set *tools.Set, cause error)
}

// servers returns the patterns of the tools of MCP servers that a run's engine is offered.
func (s Spec) servers(run *runlog.Run) []string {
	return policy.OfServers(slices.Concat(run.Tools, s.Policy.Offered)...)
}
