package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/spend"
)

// Later is the error of a run that did not take place because other runs have reserved the rest of a limit, or of a queued run because of
// any limit. The run left no record, and its slot is free for another attempt.
type Later struct{ limit *spend.Limit }

func (e *Later) Error() string { return e.limit.Error() }

// overLimit ends a run that needs more than is left of a limit.
type overLimit struct{ limit *spend.Limit }

func (e *overLimit) Error() string {
	return "spending limit: " + strings.TrimPrefix(e.limit.Error(), "limit ")
}

func (e *overLimit) Unwrap() []error { return []error{engine.ErrMaxCost, e.limit} }

// reserve sets aside what the run is likely to cost, and returns the most that it may cost, in USD; 0 is no limit. At a limit
// the run is refused.
func (w *work) reserve(ctx context.Context) (float64, error) {
	limits := w.spec.Limits
	if isScript(w.run.Engine) {
		return limits.Cost, nil // a script costs nothing
	}
	claim := spend.Claim{Run: w.run.Account(), Job: w.run.Job, Most: limits.Cost, Force: w.spec.Policy.Owner}
	grant, err := w.r.Spend.Reserve(ctx, claim, w.r.look)
	var limit *spend.Limit
	if errors.As(err, &limit) {
		return 0, atLimit(limit)
	}
	if err != nil {
		return 0, err
	}
	if limits.Typed && limits.Cost > 0 {
		grant.Most = limits.Cost
	}
	err = w.run.Update(func(record *runlog.Record) {
		record.Accounted, record.Owner, record.Reserved = true, claim.Force, finite(grant.Reserved)
	})
	return finite(grant.Most), err
}

// finite returns an amount as engines expect it: 0 is no limit.
func finite(usd float64) float64 {
	if math.IsInf(usd, 1) {
		return 0
	}
	return usd
}

// atLimit returns the refusal of a run that may not spend anything.
func atLimit(limit *spend.Limit) error {
	return &refusal{kind: ErrRefused, reason: limit.Error(), notice: notify.AtLimit(limit), cause: limit}
}

// raise returns the function by which the engine reserves more than at the start of the run; nil for an engine that costs nothing.
func (w *work) raise() func(ctx context.Context, least, most float64) (float64, error) {
	if !w.run.Accounted || w.run.Reserved == 0 {
		return nil
	}
	have := w.run.Reserved
	return func(ctx context.Context, least, most float64) (float64, error) {
		if have >= most {
			return most, nil
		}
		got, err := w.r.Spend.Raise(ctx, w.run.Account(), least, most, w.r.look)
		var limit *spend.Limit
		if errors.As(err, &limit) {
			return 0, &overLimit{limit}
		}
		have = max(have, got)
		return got, err
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
	if bill, err := w.r.Runs.Bill(w.run.Record); err != nil || bill.Cost > w.run.Settled {
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
		w.r.warn(w.r.Spend.Release(ctx, w.run.Account(), limited.limit.Needs))
		err := w.spec.Origin.Postpone(ctx, w.run, limited)
		if err != nil && w.spec.Identity.Queued { // only the record is left of the run
			return errors.Join(later, err, w.run.Finish(runlog.Failed, plaintext.OneLine(err)))
		}
		w.r.warn(err)
	} else {
		w.r.warn(w.r.Spend.Release(ctx, w.run.Account(), 0))
	}
	if guard := w.spec.Identity.Guard; guard != nil {
		w.r.warn(guard.Note(w.note))
	}
	if w.spec.Identity.Again {
		return errors.Join(later, w.run.Finish(runlog.Waiting, ""))
	}
	return errors.Join(later, w.run.Remove())
}

// look reports what another run has cost so far, and whether it may still spend. A negative cost is not known: then all that was
// reserved counts.
func (r *Runner) look(account string) (cost float64, alive bool) {
	record, err := r.Runs.Load(runlog.OfAccount(account))
	if err != nil {
		return -1, false
	}
	if record.Account() != account { // an earlier part, which was settled when the run continued
		return -1, false
	}
	alive = r.Runs.Alive(record)
	bill, err := r.Runs.Bill(record)
	if err != nil {
		return -1, alive
	}
	return max(bill.Cost-record.Settled, 0), alive
}

// settle replaces the reservation by the actual cost. A run that never reached an engine does not count.
func (w *work) settle(ctx context.Context) {
	if !w.run.Accounted {
		return
	}
	bill, err := w.r.Runs.Bill(w.run.Record)
	switch {
	case err != nil:
		w.r.warn(fmt.Errorf("run %s: what it cost is not known: %w", w.run.ID, err))
		w.r.warn(w.r.Spend.Settle(ctx, w.run.Account(), w.run.Reserved))
	case bill.Starts == 0 && bill.Cost <= w.run.Settled:
		w.r.warn(w.r.Spend.Release(ctx, w.run.Account(), 0))
	default:
		w.r.warn(w.r.Spend.Settle(ctx, w.run.Account(), max(bill.Cost-w.run.Settled, 0)))
	}
}
