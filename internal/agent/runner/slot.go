package runner

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// ScheduleOf returns the schedule of a routine's file, with the zone that is configured now.
func (f *Runner) ScheduleOf(j job.Job) slot.Schedule {
	return slot.Schedule{Job: j.ID, Name: j.Name(), Cron: j.Cron, Zone: j.Zone(f.Zone).String(), Enabled: j.Enabled}
}

// claimSlot claims the slot that Options names, else the routine's latest one if that is recent. It comes before anything else, so
// that a later fire finds the slot claimed.
func (f *fire) claimSlot(ctx context.Context) error {
	if f.job.Kind != job.Routine || f.options.Moved {
		return nil
	}
	history, err := f.Slots.Note(ctx, []slot.Schedule{f.ScheduleOf(f.job)}, nil)
	f.warn(err) // the history of schedules is incomplete, but the job runs
	at, err := f.slotOf(history[f.job.ID])
	if err != nil || at.IsZero() {
		return err
	}
	err = f.Slots.Claim(slot.Claim{Job: f.job.ID, Slot: at, Run: f.run, PID: f.Process().PID, PIDStart: f.Process().Start})
	if errors.Is(err, slot.ErrClaimed) {
		if f.rival = at; !f.yields() {
			f.giveWay(ctx, f.job.ID, at)
		}
		return nil
	}
	f.slot = at
	return err
}

// giveWay waits until the run that claimed a slot has begun, for a second at most: if this fire took the job's lock before that run,
// the slot would be skipped.
func (f *fire) giveWay(ctx context.Context, id string, at time.Time) {
	for range 100 {
		c, err := f.Slots.Load(id, at)
		if err != nil || c.Outcome != "" || !c.Alive() {
			return
		}
		if _, err := f.Runs.Load(c.Run); !errors.Is(err, fs.ErrNotExist) || f.Sleep(ctx, 10*time.Millisecond) != nil {
			return
		}
	}
}

// slotOf returns the slot that the fire is for, zero if it is for none. A timer's fire for no slot is an ErrNone.
func (f *fire) slotOf(history []slot.Schedule) (at time.Time, err error) {
	now, zone := f.Disk.Now(), f.job.Zone(f.Zone)
	if late := f.options.Slot; !late.IsZero() {
		own, _ := f.job.Schedule.Prev(late, zone)
		_, former := forecast.Latest(history, f.Zone, late, late.Add(time.Nanosecond)) // of the expression at that time
		if late.After(now) || !own.Equal(late) && !former {
			return at, slot.ErrNone
		}
		return late, nil
	}
	latest, ok := f.job.Schedule.Prev(now, zone)
	switch recent := ok && now.Sub(latest) <= slot.Grace; {
	case recent && f.job.Enabled:
		return latest, nil
	case f.options.Scheduled: // the timer is stale, or the slot is older, which tick starts late if the routine catches up
		return at, slot.ErrNone
	}
	return at, nil // permit reports a routine that is not enabled
}

// cronDelay is how long after the beginning of its minute cron may start a line of a crontab.
const cronDelay = 2 * time.Minute

// yields reports whether the fire gives way to the run that claimed its slot. A timer's fire always does. The fire of a crontab's line does
// within cronDelay of the slot. Any other fire is an additional run.
func (f *fire) yields() bool {
	if f.rival.IsZero() {
		return false
	}
	return f.options.Scheduled || f.options.Cron != nil && f.Disk.Now().Sub(f.rival) < cronDelay && f.options.Cron()
}

// contest checks the claim of the slot under the job's lock. A void claim of another run is taken over. A valid one leaves a timer's
// fire with nothing to do, and makes any other fire an additional run.
func (f *fire) contest() error {
	at := f.slot
	if at.IsZero() {
		at = f.rival
	}
	if at.IsZero() {
		return nil
	}
	c, err := f.Slots.Load(f.job.ID, at)
	if err == nil && c.Run == f.run {
		return nil
	}
	if err == nil && f.void(c) {
		f.slot = at
		return f.Slots.Rewrite(slot.Claim{
			Job: f.job.ID, Slot: at, Claimed: f.Disk.Now().In(f.Zone), Run: f.run, PID: f.Process().PID, PIDStart: f.Process().Start,
		})
	}
	f.slot, f.rival = time.Time{}, at
	if f.yields() {
		return slot.ErrClaimed
	}
	return nil
}

// void reports whether a claim has no run, because its process died before it wrote the record. The process is checked before the record,
// because a run may end between the two. A slot that was recorded as missed is open again if the clock has been set back since.
func (f *Runner) void(c slot.Claim) bool {
	if c.Outcome != "" {
		return c.Run == "" && c.Claimed.After(f.Disk.Now())
	}
	if c.Alive() {
		return false
	}
	_, err := f.Runs.Load(c.Run)
	return errors.Is(err, fs.ErrNotExist)
}

// Unanswered reports whether a slot has no claim, or a void one.
func (f *Runner) Unanswered(id string, at time.Time) bool {
	c, err := f.Slots.Load(id, at)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && f.void(c) && lock.Free(f.Home.JobLock(id))
}

// Miss records a slot as missed, and why, if it is unanswered. held reports whether it was missed because of a limit; the owner is then
// notified.
func (f *Runner) Miss(ctx context.Context, id string, at time.Time, why string) (missed, held bool, err error) {
	err = f.Slots.Claim(slot.Claim{Job: id, Slot: at, Outcome: slot.Missed, Held: why})
	if !errors.Is(err, slot.ErrClaimed) {
		return err == nil, false, err
	}
	if !f.Unanswered(id, at) {
		return false, false, nil
	}
	guard, err := lock.TryGuard(f.Home.JobLock(id))
	if err != nil {
		return false, false, nil
	}
	defer guard.Release()
	c, err := f.Slots.Load(id, at)
	if err != nil || !f.void(c) {
		return false, false, err
	}
	c.Outcome, c.Claimed = slot.Missed, f.Disk.Now().In(f.Zone)
	if held = c.Held != ""; held {
		err = f.reportMissed(ctx, id, at, c.Held)
	} else {
		c.Held = why
	}
	return true, held, errors.Join(f.Slots.Rewrite(c), err)
}

// settleSlot notes in the claim how the fire ended. A fire without a record has failed.
func (f *fire) settleSlot(outcome runlog.Outcome) {
	if f.slot.IsZero() {
		return
	}
	if outcome == "" {
		outcome = runlog.Failed
	}
	f.warn(f.Slots.Settle(f.job.ID, f.slot, f.run, string(outcome)))
}

// settleCutOff notes in the claim that the process of a run died, or that the run waits for an answer all the same.
func (f *Runner) settleCutOff(r runlog.Record) {
	outcome := runlog.Interrupted
	if r.Outcome == runlog.Waiting {
		outcome = r.Outcome
	}
	if r.Kind == string(job.Routine) && r.Scheduled != nil {
		f.warn(f.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(outcome)))
	}
}

// settleKilled notes in the claim how a run ended whose process was killed between the end of its record and that note.
func (f *Runner) settleKilled(r runlog.Record) {
	if r.Kind != string(job.Routine) || r.Scheduled == nil {
		return
	}
	c, err := f.Slots.Load(r.Job, *r.Scheduled)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.warn(err)
	if err == nil && c.Run == r.ID && c.Outcome != string(r.Outcome) && (c.Outcome == "" || c.Outcome == string(runlog.Waiting)) {
		f.warn(f.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(r.Outcome)))
	}
}

// Due returns the latest slot of a routine and reports whether it is recent and unanswered. Times before the file had its schedule are not
// slots.
func (f *Runner) Due(j job.Job, history []slot.Schedule, now time.Time) (at time.Time, due bool) {
	at, due = forecast.Latest(history, f.Zone, now.Add(-slot.Grace), now.Add(time.Nanosecond))
	return at, due && f.Unanswered(j.ID, at)
}

// settleAge is how long after the beginning of a run EndOrphans checks that its slot has the outcome.
const settleAge = time.Hour

// settleLately calls settleKilled for the runs of the last hour. A later look at the slot of a longer run finds the outcome in its record.
func (f *Runner) settleLately(ctx context.Context) {
	for r, err := range f.Runs.Since(f.Disk.Now().Add(-settleAge)) {
		if f.warn(err); err != nil || ctx.Err() != nil {
			return
		}
		if r.Done() {
			f.settleKilled(r)
		}
	}
}

// EndOrphans ends the records of runs that began since an instant and whose process died. An engine that outlived the process is
// ended at the run's time limit. The failure is reported as the next fire would. When ctx ends, the rest is left to the next call.
func (f *Runner) EndOrphans(ctx context.Context, since time.Time) {
	f.settleLately(ctx)
	open, err := f.Runs.Unfinished(since)
	f.warn(err)
	for _, r := range open {
		if ctx.Err() != nil {
			return
		}
		if f.Runs.Attended(r) || r.Kind == string(job.Webhook) && f.Inbox.Waits(r.ID) { // its run has not begun, and will be started again
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
	if err != nil || !closed.Done() { // it continues in another process
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
