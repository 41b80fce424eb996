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
	Input        prompt.Input // input without the parts that Run adds: the time, updates, the ping budget
	Conversation conversation.Conversation
	Engine       Choice
	Policy       Rights
	Limits       Limits
	Duties       []Duty        // conditions that must hold before the run may end
	Origin       origin        // what requested the run
	Sender       outbox.Sender // sends messages to the owner; nil: the configured sender
	Observe      Observer
	Plain        bool   // no engine runs, and the body of the task is sent to the owner
	Compact      string // instructions of a compaction that replaces the turn; "": a turn runs
}

// Identity names the run in tags, locks and the record.
type Identity struct {
	runlog.Subject              // if Name is empty, the id stands for it
	Run            string       // id of the run; "": a new one
	Queued         bool         // the request waits until it can run, so a pause or a limit writes no record
	Again          bool         // the run with id Run is waiting, and continues in its existing record; see Origin.Begin
	Scheduled      time.Time    // time that the run is scheduled for; zero if there is none
	File           []byte       // text of the job's file, which is kept with the requests; nil: there is none
	Typed          []string     // what was typed for the run in place of settings, see runlog.Record
	Held           *runlog.Hold // on the run, if the caller took its lock; nil: Run takes it
	Guard          *lock.Guard  // lock of the job, which the engine inherits and Run releases; nil if there is none
}

// Choice selects the engine and the model.
type Choice struct {
	Name       string       // name of the engine; "" is an error that tells the owner to configure one
	Model      string       // "" is the engine's default
	Fallback   []string     // models that are asked in order if Model cannot be used; nil: the configured ones
	Thinking   string       // as in job files
	Moved      bool         // the clock was set to another time
	Needs      engine.Needs // what the engine must be able to promise
	Transcribe bool         // the conversation is stored as a transcript, whichever engine has it
}

// Rights say what the agent may use, and where its text is sent.
type Rights struct {
	System    string   // system prompt; "" means that of an independent background run, made from its task
	Tools     []string // tool patterns in force
	Offered   []string // further patterns whose tools the model is shown; they are refused when they are called
	Root      string   // working directory; "" is the data directory
	Dirs      []policy.Root
	Seal      SealWish
	AllowPing bool
	Update    job.UpdateMode
	Mode      policy.Mode // decides about uses that no pattern allows; "" is dontAsk
	Owner     bool        // the owner started the run: its cost is counted, but no limit or pause applies
	Awaited   bool        // a person waits for the answer
	Deliver   bool        // the final text is sent to the owner
}

// Limits are the limits of one run. Zero means that the run sets none.
type Limits struct {
	Time     time.Duration
	Cost     float64       // USD
	Turns    int           // number of answers of the model
	Patience time.Duration // total wait for a service that refuses temporarily; 0: as long as the run may take
	Typed    bool          // the owner gave Cost: it replaces the configured limit of a run
	Again    time.Duration // time until the next slot that continues the same session; 0 if unknown
}

// Observer receives a turn while it happens. Its functions may be nil.
type Observer struct {
	Event func(runlog.Event)
	Text  func(text string) error // receives the agent's text as it arrives; an error ends the run

	// Permit asks the owner whether the agent may use a tool as the event describes. The event's Text is the pattern that would allow it.
	// Permit returns when the owner has answered or ctx ends. nil: the owner cannot be asked.
	Permit func(ctx context.Context, use runlog.Event) bool
}

// Duty enforces a condition that must hold before a run may end. It may let the agent take another turn.
type Duty func(ctx context.Context, set *tools.Set, t *conversation.Turn) error

// origin is what requested a run: the fire of a job, or the owner at a shell. Run calls its methods in this order.
type origin interface {
	// Begin completes the record before it is written. For a run that continues it replaces the whole record.
	Begin(r *runlog.Record) error

	// Permit returns a *Refusal if the run may not take place.
	Permit() error

	// Prepare returns the input of the turn, and does what the origin needs before the turn. The money is already reserved.
	Prepare(ctx context.Context, set *tools.Set, in prompt.Input) (prompt.Input, error)

	// Complete completes the engine's request when it is the run's turn in the conversation.
	Complete(r *engine.Request) error

	// Postpone undoes what the origin did for a run that could not take place because other runs had reserved the money.
	Postpone(ctx context.Context, r *runlog.Run, later *Later) error

	// Report reports how the run ended to the owner or the main conversation, before its text is delivered.
	Report(ctx context.Context, r *runlog.Run, cause error)

	// End does what else follows from the outcome. The record is not finished yet, but the outcome can no longer change.
	End(ctx context.Context, set *tools.Set, cause error)
}

// servers returns the patterns of the tools of MCP servers that a run's engine is offered.
func (s Spec) servers(run *runlog.Run) []string {
	return policy.OfServers(slices.Concat(run.Tools, s.Policy.Offered)...)
}
