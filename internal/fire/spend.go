package fire

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/process"
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
		return 0, &barred{ErrRefused, limit.Error(), "limit " + limit.Key + " " + limit.Until.Format(time.DateOnly)}
	}
	if err == nil {
		r.Reserved = min(granted, math.MaxFloat64)
	}
	if math.IsInf(granted, 1) {
		granted = 0 // the engine's word for no limit
	}
	return granted, err
}

// look tells the accounts what another run has cost so far, and whether it may still spend.
func (f *Firer) look(id string) (cost float64, alive bool) {
	r, err := f.Runs.Load(id)
	if err != nil {
		return -1, false // unknown: what it had reserved counts
	}
	cost = f.Runs.Cost(id)
	if cost == 0 && !r.Done() {
		cost = -1 // an engine that tells its cost at the end has not come there
	}
	owner := process.ID{PID: r.PID, Start: r.PIDStart}
	return cost, !r.Done() && (owner.Alive() || !lock.Free(f.Home.JobLock(r.Job)))
}

// settle replaces the reservation by what the run did cost.
func (f *Firer) settle(ctx context.Context, r *run.Run) {
	if r.Reserved == 0 {
		return
	}
	cost := r.Cost
	if cost == 0 && r.Turns == 0 {
		if standing, err := r.Standing(); err == nil && standing.Started {
			cost = r.Reserved // stopped before the engine told its cost: it counts for the most it can have been
		}
	}
	f.warn(f.Spend.Settle(ctx, r.ID, cost))
}
