// Package run carries out runs of agents. The caller, such as the fire of a job, a message of the owner or a question at a shell, builds a
// Spec and calls Run: the run is recorded, permitted, its cost reserved, and its prompt prepared; the agent takes its turn in the
// conversation, its duties are enforced, and the session is compacted if the agent asked for it; then the cost is settled, the owner is
// told what there is to tell, the text delivered, and the record finished. These are the steps of ollim(7) from the record on, in the same
// order, a file for one or two of them. The package fires no jobs, claims no slots and holds no chat: an Origin does what they add to a step.
package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/state/runlog"
)

// work is a run in progress.
type work struct {
	r      *Runner
	spec   Spec
	run    *runlog.Run
	held   *runlog.Hold // lock of the run itself
	note   string       // content of the job's lock file before this run
	tools  *tools.Set
	box    *sandbox
	money  *account
	keeper keeper
}

// Run carries out a Spec. The record says how the run ended. An error without a record means that nothing ran. An error together with a
// record is a failure that callers may want to distinguish.
func (r *Runner) Run(ctx context.Context, s Spec) (runlog.Record, error) {
	ctx.Done() // from here on a signal ends ctx; otherwise it would end the process, with the record open
	w, err := r.begin(ctx, s)
	if err != nil {
		return runlog.Record{}, err
	}
	defer w.release()
	cause := w.carryOut(ctx)
	if err := w.held.Check(); err != nil {
		return lost(r.Runs, w.run.ID, err)
	}
	w.run.Withdrawn = w.spec.Policy.Owner && errors.Is(context.Cause(ctx), ErrWithdrawn)
	ctx = context.WithoutCancel(ctx) // a run that was stopped is still concluded
	later, cause := w.unspent(cause)
	if later != nil {
		return runlog.Record{}, w.postpone(ctx, later)
	}
	cause = w.conclude(ctx, cause)
	w.money.settle(ctx)
	w.report(ctx, cause)
	w.deliver(ctx)
	w.end(ctx, cause)
	return w.finish(ctx, cause)
}

// carryOut carries out the steps that the time limit covers: permit, reserve, prepare, converse.
func (w *work) carryOut(ctx context.Context) error {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	defer w.kept()
	if err := w.spec.Origin.Permit(); err != nil {
		return err
	}
	if w.spec.Plain {
		if err := errors.Join(w.run.Begin(ctx), w.run.Save()); err != nil {
			return err
		}
		return w.sendBody(ctx)
	}
	ctx, stop, err := w.box.enter(ctx)
	if err != nil {
		return err
	}
	defer stop()
	engine, err := w.r.engineOf(w.spec)
	if err != nil {
		return err
	}
	w.run.Guarantees = guarantees(engine, w.spec.Engine.Model)
	granted, err := w.money.reserve(ctx)
	if err == nil {
		err = w.run.Save() // with the seal and the reservation, before the first program or request
	}
	if err != nil {
		return err
	}
	input, err := w.prepare(ctx)
	if err == nil {
		err = w.converse(ctx, engine, input, granted)
	}
	return stopped(ctx, err)
}

// lost returns the record of a run that another process has closed. Nothing more is written for it.
func lost(runs runlog.Book, id string, err error) (runlog.Record, error) {
	closed, loadErr := runs.Load(id)
	return closed, errors.Join(fmt.Errorf("run %s: %w", id, err), loadErr)
}

// Skip records a run that does not take place, and why.
func (r *Runner) Skip(ctx context.Context, s Spec, reason string) (runlog.Record, error) {
	w, err := r.begin(ctx, s)
	if err != nil {
		return runlog.Record{}, err
	}
	defer w.release()
	w.run.Held = nil // nobody closes a record that is written whole
	err = w.run.Finish(runlog.Skipped, reason)
	return w.run.Record, err
}

// Abandon ends a waiting run that cannot continue, and sends the owner text about it. The programs that its origin starts at the end are
// sealed; none starts if that is impossible or the run is not permitted. A Spec without a conversation stands for a run whose job no
// longer exists.
func (r *Runner) Abandon(ctx context.Context, s Spec, outcome runlog.Outcome, reason, text string) (runlog.Record, error) {
	id := s.Identity.Run
	held, err := r.Runs.Hold(id)
	if err != nil {
		return runlog.Record{}, err
	}
	defer held.Leave()
	run, err := r.Runs.At(id)
	if err != nil {
		return runlog.Record{}, err
	}
	run.Held = held
	r.Warn(run.Conclude(outcome, reason))
	r.Warn(r.Notify().Tell(ctx, notify.Cause{
		Kind: notify.News, Subject: id, Name: run.Label(), Text: text, Run: id, Jobs: []notify.Affected{{ID: run.Job, Name: run.Label()}},
	}))
	w := &work{r: r, spec: r.complete(s), run: run}
	w.equip()
	if _, err = w.box.confine(); err == nil && s.Conversation != nil {
		err = s.Origin.Permit()
	}
	r.Warn(err)
	w.end(ctx, nil)
	err = run.Finish(outcome, reason)
	return run.Record, err
}
