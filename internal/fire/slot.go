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
	_, err := f.Slots.Note(ctx, []slot.Schedule{ScheduleOf(e.job)}, false)
	f.warn(err) // the past may be told of less well, but the job runs
	now := f.Disk.Now()
	at := e.options.Slot
	if at.IsZero() {
		latest, ok := e.job.Schedule.Prev(now, e.job.Zone(f.Zone))
		switch recent := ok && now.Sub(latest) <= slot.Grace; {
		case !e.job.Enabled:
			return nil // which is told where it is permitted
		case !recent && e.options.Scheduled:
			return slot.ErrNone // an older one is the tick's, if the routine catches up
		case !recent:
			return nil
		}
		at = latest
	}
	err = f.Slots.Claim(slot.Claim{Job: e.job.ID, Slot: at, Run: e.id, PID: f.Process.PID, PIDStart: f.Process.Start})
	if errors.Is(err, slot.ErrClaimed) {
		e.rival = at
		return nil
	}
	e.slot = at
	return err
}

// beaten says whether a timer's fire is done, because another run answers its slot. Such a fire must not take the job's lock,
// not for a moment: the other run may be about to, and would be skipped.
func (f *Firer) beaten(e errand) bool {
	return e.options.Scheduled && !e.rival.IsZero() && !f.Unanswered(e.job.ID, e.rival)
}

// contest makes sure of the slot, as we hold the job's lock. A claim that another run has is taken over if it is void. If not, a
// timer's fire is done, and anybody else's is one more.
func (f *Firer) contest(e *errand) error {
	at := e.slot
	if at.IsZero() {
		at = e.rival
	}
	if at.IsZero() {
		return nil
	}
	c, err := f.Slots.Load(e.job.ID, at)
	if err == nil && c.Run == e.id {
		return nil
	}
	if err == nil && f.void(c) {
		e.slot = at
		return f.Slots.Rewrite(slot.Claim{
			Job: e.job.ID, Slot: at, Claimed: f.Disk.Now().In(f.Zone), Run: e.id, PID: f.Process.PID, PIDStart: f.Process.Start,
		})
	}
	e.slot = time.Time{}
	if e.options.Scheduled {
		return slot.ErrClaimed
	}
	return nil
}

// void says whether a claim came to nothing: its process died before there was a record of the run. In this order, or a run that
// comes to its end between the two would look like one that never was. A slot that was given up under a clock that has been set
// back since may still be answered.
func (f *Firer) void(c slot.Claim) bool {
	if c.Outcome != "" {
		return c.Run == "" && c.Claimed.After(f.Disk.Now())
	}
	if c.Alive() {
		return false
	}
	_, err := f.Runs.Load(c.Run)
	return errors.Is(err, fs.ErrNotExist)
}

// Unanswered says whether nobody answers a slot: there is no claim, or one that came to nothing.
func (f *Firer) Unanswered(id string, at time.Time) bool {
	c, err := f.Slots.Load(id, at)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && f.void(c) && lock.Free(f.Home.JobLock(id))
}

// Miss notes that nobody answered a slot in time, unless somebody did.
func (f *Firer) Miss(id string, at time.Time) (missed bool, err error) {
	err = f.Slots.Claim(slot.Claim{Job: id, Slot: at, Outcome: slot.Missed})
	if !errors.Is(err, slot.ErrClaimed) {
		return err == nil, err
	}
	if !f.Unanswered(id, at) {
		return false, nil
	}
	guard, err := lock.TryGuard(f.Home.JobLock(id))
	if err != nil {
		return false, nil
	}
	defer guard.Release()
	c, err := f.Slots.Load(id, at)
	if err != nil || !f.void(c) {
		return false, err
	}
	c.Outcome, c.Claimed = slot.Missed, f.Disk.Now().In(f.Zone)
	return true, f.Slots.Rewrite(c)
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

// Due is what a minute has to do with the slots of one routine: the latest, if it is recent and nobody answers it. A slot before
// the file said so is none.
func (f *Firer) Due(j job.Job, history []slot.Schedule, now time.Time) (at time.Time, due bool) {
	at, due = schedule.Latest(history, f.Zone, now.Add(-slot.Grace), now.Add(time.Nanosecond))
	return at, due && f.Unanswered(j.ID, at)
}
