// Package runner runs agents. The caller, such as a fire of a job, a message of the owner or a question at a shell, builds
// a Spec and calls Run: the run is recorded, permitted, its cost reserved, and its prompt prepared; the agent takes its turn in the
// conversation, its duties are enforced, and the session is compacted if the agent asked for it; then the cost is settled, and the
// owner is notified. These are the steps of ollim(7) from the record on, in the same order.
//
// Fire does this for jobs, and is safe to call at any moment, by several schedulers at once.
package runner

import (
	"context"
	"errors"
	"sync"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
)

// work is a run under way.
type work struct {
	r     *Runner
	spec  Spec
	run   *runlog.Run
	lock  *lock.Guard // the run's own
	note  string      // note in the job's lock file before this run
	tools *tools.Set
	vars  []string // environment of the programs that the agent starts, KEY=value

	list   *confine.List // what the programs of a sealed run may reach; nil: nothing is sealed
	dirs   [2]string     // directories of a sealed run: for temporary files and for caches
	socket string        // socket of a sealed run

	keeping sync.WaitGroup // requests to the model that are being stored
	unkept  error          // first error of storing one
}

// Run carries out a Spec. The record says how the run ended. An error without a record means that nothing ran; an error beside a record is
// a failure that callers may want to distinguish.
func (r *Runner) Run(ctx context.Context, s Spec) (runlog.Record, error) {
	ctx.Done() // from here on a signal ends ctx; otherwise it would end the process, with the record open
	w, err := r.begin(ctx, s)
	if err != nil {
		return runlog.Record{}, err
	}
	defer w.release()
	cause := w.carryOut(ctx)
	w.run.Withdrawn = w.spec.Policy.Owner && errors.Is(context.Cause(ctx), ErrWithdrawn)
	ctx = context.WithoutCancel(ctx) // a run that was stopped is still concluded
	later, cause := w.unspent(cause)
	if later != nil {
		return runlog.Record{}, w.postpone(ctx, later)
	}
	cause = w.conclude(ctx, cause)
	w.reportServers(ctx)
	w.settle(ctx)
	w.recovered(ctx)
	w.spec.Origin.Report(ctx, w.run, cause)
	w.deliver(ctx)
	w.end(ctx, cause)
	return w.finish(ctx, cause)
}

// carryOut does the steps between begin and conclude: permit, reserve, prepare (the gate), converse (the session's lock, updates, the
// prompt, the engine), enforce (the report), compact.
func (w *work) carryOut(ctx context.Context) error {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	defer w.kept()
	if err := w.spec.Origin.Permit(); err != nil {
		return err
	}
	if w.spec.Plain {
		return w.sendBody(ctx)
	}
	ctx, stop, err := w.sealed(ctx)
	if err != nil {
		return err
	}
	defer stop()
	engine, err := w.r.engineOf(w.spec)
	if err != nil {
		return err
	}
	granted, err := w.reserve(ctx)
	if err != nil {
		return err
	}
	input, err := w.prepare(ctx)
	if err != nil {
		return stopped(ctx, err)
	}
	turn, err := w.r.conversations().Begin(ctx, w.spec.Conversation, conversation.Parts{
		Engine: engine, Tools: w.tools, Run: w.run, Observe: w.spec.Observe.Event,
	})
	if err != nil {
		return stopped(ctx, err)
	}
	defer turn.Close()
	defer w.askOwner(ctx)()
	if turn.Request, err = w.request(granted); err != nil {
		return err
	}
	if w.spec.Compact != "" {
		return stopped(ctx, w.remedy("", w.compactNow(ctx, turn)))
	}
	if err = turn.Say(ctx, input); err == nil {
		err = w.enforce(ctx, turn)
	}
	return stopped(ctx, errors.Join(w.remedy(turn.Name(), err), w.compact(ctx, turn, err)))
}
