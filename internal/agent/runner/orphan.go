package runner

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// settleAge is how long after the end of a run its slot is checked for the outcome.
const settleAge = time.Hour

// EndOrphans ends the records of runs that began since an instant and whose process died. An engine that outlived the process is
// ended at the run's time limit. The failure is reported as the next fire would. When ctx ends, the rest is left to the next call.
func (f *Runner) EndOrphans(ctx context.Context, since time.Time) {
	for r, err := range f.Runs.Since(since) {
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			f.warn(err)
			return
		}
		if r.Done() {
			if since.IsZero() || r.Finished.After(f.Disk.Now().Add(-settleAge)) {
				f.settleKilled(r)
			}
			continue
		}
		if f.Runs.Attended(r) || r.Kind == string(job.Webhook) && f.Inbox.Waits(r.ID) { // that has not begun, and runs again
			continue
		}
		// The native engine ended with its process; a command that it left behind holds the lock for no engine.
		if r.Engine != engine.Native && f.Runs.Alive(r) {
			if r.Deadline == nil || f.Disk.Now().Before(*r.Deadline) {
				continue
			}
		}
		f.endOrphan(ctx, r)
	}
}

func (f *Runner) endOrphan(ctx context.Context, r runlog.Record) {
	cutOff, err := f.Runs.CloseOf(r)
	f.warn(err)
	closed, err := f.Runs.Load(r.ID)
	if err != nil || !closed.Done() { // it goes on in another process
		return
	}
	f.warn(f.Runs.ForgetStop(r.ID))
	if !cutOff {
		return
	}
	f.settleCutOff(closed)
	isJob := r.Kind == string(job.Routine) || r.Kind == string(job.Webhook) // a reminder is tried again, and reported at the end
	if closed.Outcome != runlog.Waiting && isJob {
		f.reportFailure(ctx, closed, "was cut off before it ended")
	}
	if left := f.Runs.Leftover(f.Home.RunLock(r.ID)); left != nil {
		f.reportLeftover(ctx, closed, left)
	}
}
