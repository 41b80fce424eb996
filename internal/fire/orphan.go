package fire

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/process"
	"github.com/ollim/ollim/internal/run"
)

// EndOrphans ends the runs that began since an instant and whose process died without a word: their engine, if it goes on alone,
// at the run's time limit. Their owner is told, as by the next fire.
func (f *Firer) EndOrphans(ctx context.Context, since time.Time) {
	for _, r := range f.Runs.Since(since) {
		if r.Done() || (process.ID{PID: r.PID, Start: r.PIDStart}).Alive() {
			continue
		}
		if f.Runs.Alive(r) { // its engine is
			if r.Deadline == nil || f.Disk.Now().Before(*r.Deadline) {
				continue
			}
			process.KillAll("OLLIM_RUN=" + r.ID)
		}
		f.endOrphan(ctx, r)
	}
}

func (f *Firer) endOrphan(ctx context.Context, r run.Record) {
	cutOff, err := f.Runs.Close(r.ID)
	f.warn(err)
	if !cutOff || r.Kind != string(job.Routine) { // a reminder is tried again, and told of in the end
		return
	}
	if closed, err := f.Runs.Load(r.ID); err == nil {
		f.tellFailure(ctx, closed, "was cut off before it ended")
	}
}

// Unapproved tells the owner, once, that a job waits for approval, and says whether it does.
func (f *Firer) Unapproved(ctx context.Context, j job.Job) (waits bool) {
	err := f.approved(j)
	if err == nil {
		return false
	}
	f.tellRefusal(ctx, run.Record{Job: j.ID, Name: j.Name(), Description: j.Description, Error: oneLine(err)}, err)
	return true
}
