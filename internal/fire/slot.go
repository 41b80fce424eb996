package fire

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/schedule"
	"github.com/ollim/ollim/internal/slot"
)

// ScheduleOf is what a routine's file says of its time.
func ScheduleOf(j job.Job) slot.Schedule {
	return slot.Schedule{Job: j.ID, Name: j.Name(), Cron: j.Cron, Zone: j.Timezone, Enabled: j.Enabled}
}

// claimSlot makes the fire the answer to the routine's latest slot, if that is recent, or to the one that it is told. Before
// anything else is done, so that whoever comes later finds it answered.
func (f *Firer) claimSlot(ctx context.Context, e *errand) error {
	if e.job.Kind != job.Routine || e.options.Moved {
		return nil
	}
	if err := f.Slots.Note(ctx, []slot.Schedule{ScheduleOf(e.job)}, false); err != nil {
		return err
	}
	now := f.Disk.Now()
	at := e.options.Slot
	if at.IsZero() {
		latest, ok := e.job.Schedule.Prev(now, e.job.Zone(f.Zone))
		if !ok || !e.job.Enabled || now.Sub(latest) > schedule.Grace {
			return nil
		}
		at = latest
	}
	err := f.Slots.Claim(e.job.ID, at, e.id, "")
	if errors.Is(err, slot.ErrClaimed) {
		e.rival = at
		return nil
	}
	e.slot = at
	return err
}

// contest decides about a slot that was claimed before us; we hold the job's lock. A claim whose run never began is void. Else
// a timer's fire is done, and anybody else's is one more.
func (f *Firer) contest(e *errand) error {
	if e.rival.IsZero() {
		return nil
	}
	c, err := f.Slots.Load(e.job.ID, e.rival)
	if err == nil && c.Outcome == "" && f.void(c) {
		c.Job, c.Run, c.Claimed = e.job.ID, e.id, f.Disk.Now().In(f.Zone)
		e.slot = e.rival
		return f.Slots.Rewrite(c)
	}
	if e.options.Scheduled {
		return slot.ErrClaimed
	}
	return nil
}

func (f *Firer) void(c slot.Claim) bool {
	_, err := f.Runs.Load(c.Run)
	return errors.Is(err, fs.ErrNotExist)
}

// settleSlot notes in the ledger how the fire ended; one that came to no record has failed.
func (f *Firer) settleSlot(e errand, outcome run.Outcome) {
	if e.slot.IsZero() {
		return
	}
	if outcome == "" {
		outcome = run.Failed
	}
	f.warn(f.Slots.Settle(e.job.ID, e.slot, e.id, string(outcome)))
}

// settleCutOff does so for a run whose process died.
func (f *Firer) settleCutOff(r run.Record) {
	if r.Kind == string(job.Routine) && r.Scheduled != nil {
		f.warn(f.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(run.Interrupted)))
	}
}

// Due is what a minute has to do with the slots of one routine: the latest, if it is recent and nobody has claimed it, else a
// claim that came to nothing.
func (f *Firer) Due(j job.Job, now time.Time) (at time.Time, due bool) {
	at, ok := j.Schedule.Prev(now, j.Zone(f.Zone))
	if !ok || !j.Enabled || now.Sub(at) > schedule.Grace {
		return at, false
	}
	c, err := f.Slots.Load(j.ID, at)
	if errors.Is(err, fs.ErrNotExist) {
		return at, true
	}
	return at, err == nil && c.Outcome == "" && f.void(c) && lock.Free(f.Home.JobLock(j.ID))
}
