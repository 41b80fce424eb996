package runner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Kinds of runs that are no job's.
const (
	kindChat    = "chat"
	kindSession = "session"
	kindChannel = "channel"
	kindFork    = "fork"
	kindAsk     = runlog.Ask
)

// turnLimit bounds a turn whose owner is there to stop it.
const turnLimit = 24 * time.Hour

// runTurn runs a Spec of the owner's; wrong is why it may not run, if the settings are not right.
func (r *Runner) runTurn(ctx context.Context, s Spec, wrong error) (runlog.Record, error) {
	s.Origin = &turnOrigin{runner: r, identity: s.Identity, owner: s.Policy.Owner, wrong: wrong}
	return r.Run(ctx, s)
}

// turnOrigin is the origin of a run that is no job's.
type turnOrigin struct {
	runner   *Runner
	identity Identity
	owner    bool
	wrong    error
}

// Begin ends the record of the conversation's last turn, if its process died.
func (o *turnOrigin) Begin(record *runlog.Record) error {
	if record.Key == "" {
		return nil
	}
	r := o.runner
	last, err := r.Runs.Load(strings.TrimSpace(lock.ReadNote(r.Home.ConversationLock(record.Key))))
	if err == nil && slices.Contains([]string{kindChat, kindSession, kindFork, o.identity.Kind}, last.Kind) && !last.Done() && !r.Runs.Alive(last) {
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

func (o *turnOrigin) Prepare(_ context.Context, _ *runlog.Run, _ *tools.Set, in prompt.Input) (prompt.Input, error) {
	return in, nil
}

func (o *turnOrigin) Complete(*engine.Request) error { return nil }

func (o *turnOrigin) Postpone(context.Context, *runlog.Run, *Later) error { return nil }

// End has nothing to do.
func (o *turnOrigin) End(context.Context, *runlog.Run, error) {}

// Report reports a refusal. What the owner typed has an exit status and streams that say how it ended.
func (o *turnOrigin) Report(ctx context.Context, run *runlog.Run, cause error) {
	if run.Outcome == runlog.Refused && !o.owner {
		o.runner.reportRefusal(ctx, run.Record, cause)
	}
}

// patterns are the default tool patterns with those of tool-policy.yaml: of a background run or of one in the foreground, and
// those of the main conversation. The error says what is wrong with the file.
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
			w.warn(err)
			for _, use := range asked {
				waiting, cancel := context.WithTimeout(ctx, tools.AskPatience)
				allowed := w.spec.Observe.Permit(waiting, use)
				if waiting.Err() == nil { // else the use has been decided meanwhile
					w.warn(w.run.Event(ctx, runlog.Event{Type: runlog.Permitted, Tool: use.Tool, ToolID: use.ToolID, IsError: !allowed}))
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
