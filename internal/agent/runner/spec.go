package runner

import (
	"context"
	"slices"
	"sync"
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
	Identity     identity
	Input        prompt.Input // without what Run adds: the time, updates, the ping budget
	Conversation conversation.Conversation
	Engine       choice
	Policy       rights
	Limits       limits
	Duties       []duty        // what must hold before the run may end
	Origin       origin        // nil: an automatic turn without a job
	Sender       outbox.Sender // sends messages to the owner; nil: as configured
	Observe      Observer
	Plain        bool   // no engine runs: the body of the task itself is sent to the owner
	Compact      string // if set, there is no turn: the session is compacted by these instructions
}

// identity names the run in tags, locks and the record.
type identity struct {
	runlog.Subject             // an empty Name stands for the id
	Run            string      // its id; "": a new one
	Queued         bool        // the request waits until it can run, so a pause or a limit leaves no record
	Again          bool        // run Run waits and is continued in its existing record; see origin.Begin
	Scheduled      time.Time   // the time that the run is for; zero: none
	Guard          *lock.Guard // of the job, which the engine inherits and Run releases; nil: none
}

// choice selects the engine and the model.
type choice struct {
	Name       string // of the engine; "" is an error that tells the owner to configure one
	Model      string // "" is the engine's default
	Thinking   string // as in job files
	Moved      bool   // the clock is not the real one
	Transcribe bool   // the conversation is kept as a transcript whatever engine holds it
}

// rights are what the agent may use, and where its text goes.
type rights struct {
	System    string   // the system prompt; "": that of a background run that works alone, made of its task
	Tools     []string // the patterns in force
	Offered   []string // more patterns whose tools the model is shown; what is not in force is refused when called
	Root      string   // the working directory; "" is the data directory
	Dirs      []policy.Root
	Seal      sealWish
	AllowPing bool
	Update    job.UpdateMode
	Mode      policy.Mode // for what no pattern allows; "" is dontAsk
	Owner     bool        // the owner typed it: its cost is counted, but no limit or pause applies
	Awaited   bool        // a person waits for the answer
	Deliver   bool        // the final text is sent to the owner
}

// limits bound the run. A zero is no limit of its own.
type limits struct {
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

// duty enforces something that must hold before a run may end. It may let the agent take another turn.
type duty func(ctx context.Context, w *work, t *conversation.Turn) error

// origin is what asked for a run: a job's fire, the owner at a shell. Run calls its methods in this order.
type origin interface {
	// Begin completes the record before it is written. For a run that continues it replaces the whole record.
	Begin(r *runlog.Record) error

	// Permit returns a *refusal if the run may not take place.
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

// Kinds of runs that have no job.
const (
	kindChat    = "chat"
	kindSession = "session"
	kindChannel = "channel"
	kindFork    = "fork"
	kindAsk     = runlog.Ask
)

// turnLimit bounds a turn whose owner is there to stop it.
const turnLimit = 24 * time.Hour

// runTurn runs a Spec that has no job. wrong is an error of the settings that refuses it, or nil.
func (t Turns) runTurn(ctx context.Context, s Spec, wrong error) (runlog.Record, error) {
	s.Origin = &turnOrigin{runner: t.r, owner: s.Policy.Owner, wrong: wrong}
	return t.r.Run(ctx, s)
}

// turnOrigin is the origin of a run that has no job.
type turnOrigin struct {
	runner *Runner
	owner  bool
	wrong  error
}

// Begin ends the record of the conversation's last turn, if its process died.
func (o *turnOrigin) Begin(record *runlog.Record) error {
	if record.Key == "" {
		return nil
	}
	r := o.runner
	last, err := r.Runs.Noted(r.Home.ConversationLock(record.Key))
	if err == nil && slices.Contains([]string{kindChat, kindSession, kindFork, record.Kind}, last.Kind) && !last.Done() && !r.Runs.Alive(last) {
		_, err := r.Runs.Close(last.ID)
		r.warn(err)
	}
	return nil
}

func (o *turnOrigin) Permit() error {
	if err := o.runner.paused(o.owner); err != nil {
		return err
	}
	return o.wrong
}

func (o *turnOrigin) Prepare(_ context.Context, _ *tools.Set, in prompt.Input) (prompt.Input, error) {
	return in, nil
}

func (o *turnOrigin) Complete(*engine.Request) error { return nil }

func (o *turnOrigin) Postpone(context.Context, *runlog.Run, *Later) error { return nil }

// End has nothing to do.
func (o *turnOrigin) End(context.Context, *tools.Set, error) {}

// Report reports a refusal. A command that the owner typed reports by its exit status and output.
func (o *turnOrigin) Report(ctx context.Context, run *runlog.Run, cause error) {
	if run.Outcome == runlog.Refused && !o.owner {
		o.runner.reportRefusal(ctx, run.Record, cause, 1)
	}
}

// patterns returns the default tool patterns with those of tool-policy.yaml. own are the patterns of a run in the background or the
// foreground, main those of the main conversation. The error says what is wrong with the file.
func (r *Runner) patterns(background bool) (own, main []string, err error) {
	extra, err := r.Approvals.Policy()
	if err != nil {
		return nil, nil, err
	}
	main = slices.Concat(policy.DefaultMain(), extra.Main)
	if !background {
		return slices.Clone(main), main, nil
	}
	own = policy.DefaultBackground()
	if extra.Override != nil {
		own = slices.Clone(extra.Override)
	}
	return append(own, extra.Background...), main, nil
}

// askOwner lets the owner answer what the run's tools ask, until the returned function is called.
func (w *work) askOwner(ctx context.Context) (stop func()) {
	if !w.run.MayAsk {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		look := time.NewTicker(tools.AskEvery)
		defer look.Stop()
		for ctx.Err() == nil {
			asked, err := w.run.Unanswered()
			w.r.warn(err)
			for _, use := range asked {
				waiting, cancel := context.WithTimeout(ctx, tools.AskPatience)
				allowed := w.spec.Observe.Permit(waiting, use)
				if waiting.Err() == nil { // else the use has been decided meanwhile
					w.r.warn(w.run.Event(ctx, runlog.Event{Type: runlog.Permitted, Tool: use.Tool, ToolID: use.ToolID, IsError: !allowed}))
				}
				cancel()
			}
			select {
			case <-look.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); asking.Wait() }
}

// reach returns the patterns that file tools check when they are used. If the owner can be asked, they cover all that the owner may
// allow.
func reach(run *runlog.Run) []string {
	if policy.Mode(run.Permissions) == "" {
		return run.Tools
	}
	return append([]string{"Read(./**)", "Glob(./**)", "Grep(./**)", "Write(./**)", "Edit(./**)"}, run.Tools...)
}
