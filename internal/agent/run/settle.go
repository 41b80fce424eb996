package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/spend"
)

// conclude decides how the run ended, and notes it in the events and the record, which is not finished yet. It returns the cause of a
// failure; nil also for a run that its gate held back or that waits for an answer.
func (w *work) conclude(ctx context.Context, cause error) error {
	outcome, reason := outcomeOf(cause), ""
	overload := w.overload(cause)
	if overload != nil {
		outcome = runlog.Failed // the service ended the run, not the time limit
	}
	switch {
	case overload != nil && errors.Is(cause, ErrTimeout):
		reason = fmt.Sprintf("the model service did not answer within %s, the last try: %s", job.FormatDuration(w.spec.Limits.Time), plaintext.OneLine(overload))
		cause = fmt.Errorf("%w: %w", engine.ErrUnavailable, overload)
	case outcome == runlog.Gated, outcome == runlog.Waiting:
		cause = nil
	case outcome == runlog.Timeout:
		reason = fmt.Sprintf("stopped after %s", job.FormatDuration(w.spec.Limits.Time))
	case outcome == runlog.Interrupted && w.run.Withdrawn:
		reason = "stopped by you"
	case errors.Is(cause, ErrSilent):
		reason = ErrSilent.Error()
	case outcome == runlog.Interrupted:
		reason = cmp.Or(w.r.Runs.StopReason(w.run.ID), "stopped by a signal")
	case cause != nil:
		reason = plaintext.OneLine(cause)
	}
	if cause != nil {
		w.r.Warn(w.run.Event(ctx, runlog.Event{Type: runlog.ErrorEvent, Text: reason}))
	}
	if fault := w.faultOf(cause); fault != "" {
		w.r.Warn(w.run.Update(func(r *runlog.Record) { r.Fault = string(fault) }))
	}
	w.r.Warn(w.run.Conclude(outcome, reason))
	w.run.Price = w.r.Settings.price(w.run.ModelUsed)
	return cause
}

// price returns the price of a model; nil if it is not known.
func (s Settings) price(name string) *runlog.Price {
	if name == "" || s.Models == nil {
		return nil
	}
	m := s.Models().Resolve(name)
	if !m.Priced {
		return nil
	}
	p := &runlog.Price{Rates: runlog.Rates(m.Price), LongFrom: m.Long}
	if long := runlog.Rates(m.LongPrice); m.Long > 0 {
		p.Long = &long
	}
	return p
}

func outcomeOf(cause error) runlog.Outcome {
	switch {
	case cause == nil:
		return runlog.OK
	case errors.Is(cause, ErrTimeout):
		return runlog.Timeout
	case errors.Is(cause, context.Canceled):
		return runlog.Interrupted
	case errors.Is(cause, errWaiting):
		return runlog.Waiting
	case errors.Is(cause, ErrPaused):
		return runlog.Paused
	case errors.Is(cause, ErrRefused):
		return runlog.Refused
	case errors.Is(cause, errUnreported):
		return runlog.Unreported
	case errors.Is(cause, ErrGated):
		return runlog.Gated
	}
	return runlog.Failed
}

// overload returns the temporary refusal of the service that ended a run: the run's error or, if its time was up, the last refusal. It is
// nil if something else ended the run.
func (w *work) overload(cause error) error {
	var overloaded *engine.Overloaded
	switch {
	case errors.As(cause, &overloaded):
		return overloaded
	case !errors.Is(cause, ErrTimeout):
		return nil
	}
	n, why, err := w.run.Refusals()
	if w.r.Warn(err); n < 2 { // a single refusal may have another reason
		return nil
	}
	return errors.New(why)
}

// faultOf returns the kind of cause that made a run fail; "" if the run did not fail, was cancelled, or failed by the job's own fault.
func (w *work) faultOf(cause error) notify.Kind {
	var limit *spend.Limit
	switch {
	case cause == nil, errors.Is(cause, context.Canceled):
		return ""
	case w.overload(cause) != nil:
		return notify.Service
	case errors.Is(cause, syscall.ENOSPC):
		return notify.Disk
	case errors.As(cause, &limit) && !limit.Until.IsZero():
		return notify.Limit
	case errors.Is(cause, engine.ErrKey):
		return notify.Key
	case errors.Is(cause, engine.ErrModel):
		return notify.Model
	case errors.Is(cause, ErrNoEngine), errors.Is(cause, engine.ErrSetup):
		return notify.Engine
	case errors.Is(cause, engine.ErrUnavailable):
		return notify.Service
	}
	return ""
}

// settle replaces the reservation by the actual cost. A run that never reached an engine does not count.
func (a *account) settle(ctx context.Context) {
	if !a.run.Accounted {
		return
	}
	bill, err := a.run.Bill()
	switch {
	case err != nil:
		a.warn(fmt.Errorf("run %s: what it cost is not known: %w", a.run.ID, err))
		a.warn(a.spend.Settle(ctx, a.run.Account(), a.run.Reserved))
	case bill.Starts == 0 && bill.Cost <= a.run.Settled:
		a.warn(a.spend.Release(ctx, a.run.Account(), 0))
	default:
		a.warn(a.spend.Settle(ctx, a.run.Account(), max(bill.Cost-a.run.Settled, 0)))
	}
}

// unspent decides about a run that a limit ended before it spent anything. later is not nil if the run is to be taken back: because only
// reservations of other runs prevented it, because its fork was ended before it began, or because it is queued and met any limit or pause.
// Otherwise the run is refused, as if nothing had been left at its start.
func (w *work) unspent(cause error) (later, sorted error) {
	if errors.Is(cause, session.ErrNoFork) || w.spec.Identity.Queued && errors.Is(cause, ErrPaused) {
		return cause, cause
	}
	var limit *spend.Limit
	if !errors.As(cause, &limit) {
		return nil, cause
	}
	if bill, err := w.run.Bill(); err != nil || bill.Cost > w.run.Settled {
		return nil, cause
	}
	if w.spec.Identity.Again {
		if standing, err := w.run.Standing(); err != nil || standing.Question == "" { // the agent has read the answer
			return nil, cause
		}
	}
	if limit.Passing || w.spec.Identity.Again || w.spec.Identity.Queued {
		return &Later{limit}, cause
	}
	return nil, atLimit(limit)
}

// postpone takes back a run that has to wait: its reservation, what its origin claimed, its note in the job's lock, and last its
// record, which refers to the others. A run that has asked a question keeps its record, and goes on waiting.
func (w *work) postpone(ctx context.Context, later error) error {
	if limited := (*Later)(nil); errors.As(later, &limited) {
		w.r.Warn(w.r.Spend.Release(ctx, w.run.Account(), limited.Limit.Needs))
		err := w.spec.Origin.Postpone(ctx, w.run, limited)
		if err != nil && w.spec.Identity.Queued { // only the record is left of the run
			return errors.Join(later, err, w.run.Finish(runlog.Failed, plaintext.OneLine(err)))
		}
		w.r.Warn(err)
	} else {
		w.r.Warn(w.r.Spend.Release(ctx, w.run.Account(), 0))
	}
	if guard := w.spec.Identity.Guard; guard != nil {
		w.r.Warn(guard.Note(w.note))
	}
	if w.spec.Identity.Again {
		return errors.Join(later, w.run.Finish(runlog.Waiting, ""))
	}
	return errors.Join(later, w.run.Remove())
}
