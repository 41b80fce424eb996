package fire

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/spend"
)

// reserve sets aside what the run may cost at most, and returns that, in USD. At a limit the run is refused.
func (f *Firer) reserve(ctx context.Context, j job.Job, o Options, r *run.Run) (float64, error) {
	if isScript(r.Engine) {
		return j.MaxCost, nil // no account is behind it
	}
	granted, err := f.Spend.Reserve(ctx, r.ID, j.MaxCost, f.look, o.Owner)
	var limit *spend.Limit
	if errors.As(err, &limit) && limit.Passing() {
		return 0, &barred{kind: ErrPaused, reason: limit.Error()} // only runs under way stand in the way
	}
	if errors.As(err, &limit) {
		return 0, &barred{kind: ErrRefused, reason: limit.Error(), key: "limit " + limit.Key + " " + limit.Until.Format(time.DateOnly)}
	}
	if err != nil {
		return 0, err
	}
	if o.Owner && j.Kind == job.Ask && j.MaxCost > 0 {
		granted = j.MaxCost // as its owner has just typed
	}
	if math.IsInf(granted, 1) {
		granted = 0 // the engine's word for no limit
	}
	err = r.Update(func(record *run.Record) { record.Accounted, record.Reserved = true, granted })
	return granted, err
}

// look tells the accounts what another run has cost so far, and whether it may still spend. A negative cost is not known:
// then all that was reserved counts.
func (f *Firer) look(id string) (cost float64, alive bool) {
	r, err := f.Runs.Load(id)
	if err != nil {
		return -1, false
	}
	bill, err := f.Runs.Bill(id)
	if err != nil || !bill.Known() {
		return -1, f.Runs.Alive(r)
	}
	return bill.Cost, f.Runs.Alive(r)
}

// settle replaces the reservation by what the run did cost; one that never reached an engine does not count.
func (f *Firer) settle(ctx context.Context, r *run.Run) {
	if !r.Accounted {
		return
	}
	bill, err := f.Runs.Bill(r.ID)
	switch {
	case err == nil && bill.Starts == 0:
		f.warn(f.Spend.Release(ctx, r.ID))
	case err == nil && bill.Known():
		f.warn(f.Spend.Settle(ctx, r.ID, bill.Cost))
	default: // stopped before the engine told: the most that it can have been
		f.warn(f.Spend.Settle(ctx, r.ID, max(bill.Cost, r.Reserved)))
	}
}
