package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// Later is the error of a fire that did not take place, because other runs have reserved what is left of a limit. It left no
// record, and its slot is free for another attempt.
type Later struct{ limit *spend.Limit }

func (e *Later) Error() string { return e.limit.Error() }

// overLimit ends a run that needs more than is left of a limit.
type overLimit struct{ limit *spend.Limit }

func (e *overLimit) Error() string {
	return "spending limit: " + strings.TrimPrefix(e.limit.Error(), "limit ")
}

func (e *overLimit) Unwrap() []error { return []error{engine.ErrMaxCost, e.limit} }

// reserve sets aside what the run is likely to cost, and returns the most that it may cost, in USD; 0 is no limit. At a
// limit the run is refused.
func (f *Firer) reserve(ctx context.Context, j job.Job, o Options, r *runlog.Run) (float64, error) {
	if isScript(r.Engine) {
		return j.MaxCost, nil // no account is behind it
	}
	grant, err := f.Spend.Reserve(ctx, spend.Claim{Run: r.ID, Job: j.ID, Most: j.MaxCost, Force: o.Owner}, f.look)
	var limit *spend.Limit
	if errors.As(err, &limit) {
		return 0, atLimit(limit)
	}
	if err != nil {
		return 0, err
	}
	if o.Owner && j.Kind == job.Ask && j.MaxCost > 0 {
		grant.Most = j.MaxCost // as its owner has just typed
	}
	err = r.Update(func(record *runlog.Record) { record.Accounted, record.Reserved = true, finite(grant.Reserved) })
	return finite(grant.Most), err
}

// finite is an amount in the engines' words, for which 0 is no limit.
func finite(usd float64) float64 {
	if math.IsInf(usd, 1) {
		return 0
	}
	return usd
}

// atLimit is the refusal of a run that may not spend anything.
func atLimit(limit *spend.Limit) error {
	return &barred{kind: ErrRefused, reason: limit.Error(), key: "limit " + limit.Key + " " + limit.Until.Format(time.DateOnly), cause: limit}
}

// raise is how the run's engine asks for more than was reserved at its start; nil for one that costs nothing.
func (f *Firer) raise(r *runlog.Run) func(ctx context.Context, least, most float64) (float64, error) {
	if !r.Accounted || r.Reserved == 0 {
		return nil
	}
	have := r.Reserved
	return func(ctx context.Context, least, most float64) (float64, error) {
		if have >= most {
			return most, nil
		}
		got, err := f.Spend.Raise(ctx, r.ID, least, most, f.look)
		var limit *spend.Limit
		if errors.As(err, &limit) {
			return 0, &overLimit{limit}
		}
		have = max(have, got)
		return got, err
	}
}

// unspent decides about a run that a limit ended before it spent anything. If only the reservations of other runs were in the way,
// later is not nil and the run is to be undone. Otherwise it is refused, like one that found nothing left at its start.
func (f *Firer) unspent(r *runlog.Run, cause error) (later *Later, sorted error) {
	var limit *spend.Limit
	if !errors.As(cause, &limit) {
		return nil, cause
	}
	if bill, err := f.Runs.Bill(r.Record); err != nil || bill.Cost > 0 {
		return nil, cause
	}
	if limit.Passing() {
		return &Later{limit}, cause
	}
	return nil, atLimit(limit)
}

// undo takes back a fire that has to wait: its reservation, its claims of the slot and of a reminder's file, its note in the job's
// lock, and last its record, which refers to the others.
func (f *Firer) undo(ctx context.Context, e errand, r *runlog.Run, later *Later) (runlog.Record, error) {
	f.warn(f.Spend.Release(ctx, r.ID, later.limit.Needs))
	if !e.slot.IsZero() {
		f.warn(f.Slots.Release(e.job.ID, e.slot, r.ID, later.Error()))
	}
	f.warn(f.Jobs.GiveBack(e.job, r.Path))
	if e.guard != nil {
		f.warn(e.guard.Note(e.note))
	}
	return runlog.Record{}, errors.Join(later, r.Remove())
}

// tellMissed tells the owner, once until the job works again, of a slot that was missed because of a limit.
func (f *Firer) tellMissed(ctx context.Context, id string, at time.Time, reason string) error {
	first, err := f.Told.Once(ctx, notice.Refusal(id, "missed"))
	if err != nil || !first {
		return err
	}
	label := id
	if shelf, err := f.Jobs.Load(); err == nil {
		if j, known := shelf.ByID(id); known {
			label = j.Label()
		}
	}
	return f.Updates.Add(ctx, prompt.MissedSlot(label, at.In(f.Zone), reason), "ollim")
}

// look tells the accounts what another run has cost so far, and whether it may still spend. A negative cost is not known:
// then all that was reserved counts.
func (f *Firer) look(id string) (cost float64, alive bool) {
	r, err := f.Runs.Load(id)
	if err != nil {
		return -1, false
	}
	alive = f.Runs.Alive(r)
	bill, err := f.Runs.Bill(r)
	if err != nil {
		return -1, alive
	}
	return bill.Cost, alive
}

// settle replaces the reservation by what the run did cost; one that never reached an engine does not count.
func (f *Firer) settle(ctx context.Context, r *runlog.Run) {
	if !r.Accounted {
		return
	}
	bill, err := f.Runs.Bill(r.Record)
	switch {
	case err != nil:
		f.warn(fmt.Errorf("run %s: what it cost is not known: %w", r.ID, err))
		f.warn(f.Spend.Settle(ctx, r.ID, r.Reserved))
	case bill.Starts == 0 && bill.Cost == 0:
		f.warn(f.Spend.Release(ctx, r.ID, 0))
	default:
		f.warn(f.Spend.Settle(ctx, r.ID, bill.Cost))
	}
}
