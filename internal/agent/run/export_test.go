package run

import (
	"context"

	"github.com/ollim/ollim/internal/state/runlog"
)

// PastRecords is pastRecords.
const PastRecords = pastRecords

// Past returns the earlier runs of a run's conversation.
func (r *Runner) Past(record runlog.Record, most int) []runlog.Record {
	return r.past().of(record, most)
}

// Begun is a run in progress, whose steps a test takes one by one.
type Begun struct{ w *work }

// Begin begins a run, which must be released.
func (r *Runner) Begin(ctx context.Context, s Spec) (Begun, error) {
	w, err := r.begin(ctx, s)
	return Begun{w}, err
}

// CarryOut carries out the steps that the time limit covers.
func (b Begun) CarryOut(ctx context.Context) error { return b.w.carryOut(ctx) }

// AskOwner lets the owner answer what the run's tools ask, until stop is called.
func (b Begun) AskOwner(ctx context.Context) (stop func()) { return b.w.askOwner(ctx) }

// Conclude notes how a run ended.
func (b Begun) Conclude(ctx context.Context, cause error) { b.w.conclude(ctx, cause) }

// Report tells what there is to tell of a run that has been concluded.
func (b Begun) Report(ctx context.Context) { b.w.report(ctx, nil) }

// Deliver sends the text of a run that has been concluded.
func (b Begun) Deliver(ctx context.Context) { b.w.deliver(ctx) }

// Finish settles the cost and finishes the record.
func (b Begun) Finish(ctx context.Context) error {
	b.w.money.settle(ctx)
	_, err := b.w.finish(ctx, nil)
	return err
}

// Run returns the run.
func (b Begun) Run() *runlog.Run { return b.w.run }

// Release releases the run's locks.
func (b Begun) Release() { b.w.release() }
