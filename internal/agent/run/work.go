package run

import (
	"context"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// longestWork is the time limit of work that is no turn of an agent.
const longestWork = 24 * time.Hour

// Raise raises what a run has reserved to between least and most USD, see spend.Book. nil: no limit binds the run.
type Raise func(ctx context.Context, least, most float64) (granted float64, err error)

// Work records work that asks models outside a turn of an agent, such as a backtest, as a run: its cost is reserved and settled, and ollim
// stop ends it. The limits bind it unless record.Owner is set. do adds usage events to the run. most is its highest cost in USD; 0 is no
// limit.
func Work(ctx context.Context, r *Runner, record runlog.Record, most float64, do func(context.Context, *runlog.Run, Raise) error) (runlog.Record, error) {
	ctx.Done() // from here on a signal ends ctx, see Run
	var err error
	if record.ID == "" {
		if record.ID, err = runlog.NewID(r.Disk.Now(), r.Random); err != nil {
			return record, err
		}
	}
	record.Process, record.Started = r.Host.Process(), r.Disk.Now()
	held, err := r.Runs.Hold(record.ID)
	if err != nil {
		return record, err
	}
	defer held.Leave()
	run, err := r.Runs.Open(record)
	if err != nil {
		return record, err
	}
	run.Held = held
	s := Spec{Limits: Limits{Time: longestWork, Cost: most, Typed: true}, Policy: Rights{Owner: record.Owner}}
	w := &work{r: r, spec: s, run: run, held: held}
	w.money = &account{run: run, spec: s, spend: r.Spend, runs: r.Runs, warn: r.Warn, waits: true}
	granted, err := w.money.reserve(ctx)
	if err == nil {
		err = run.Save()
	}
	if err == nil {
		bounded, cancel := w.bounded(ctx)
		if err = do(bounded, run, w.money.raise(granted)); !errors.Is(err, context.Cause(bounded)) { // else it gives the reason
			err = stopped(bounded, err)
		}
		cancel()
	}
	if err := held.Check(); err != nil {
		return lost(r.Runs, run.ID, err)
	}
	run.Withdrawn = record.Owner && errors.Is(context.Cause(ctx), ErrWithdrawn)
	ctx = context.WithoutCancel(ctx)
	reason := ""
	if err != nil {
		reason = plaintext.OneLine(err)
	}
	r.Warn(run.Conclude(outcomeOf(err), reason))
	w.money.settle(ctx)
	ended := run.Finish(run.Outcome, run.Error)
	return run.Record, errors.Join(err, ended)
}
