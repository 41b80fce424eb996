package runner

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// ScheduleOf is what a routine's file says of its time, in the zone that it has today: the configured one may be another tomorrow.
func (f *Runner) ScheduleOf(j job.Job) slot.Schedule {
	return slot.Schedule{Job: j.ID, Name: j.Name(), Cron: j.Cron, Zone: j.Zone(f.Zone).String(), Enabled: j.Enabled}
}

// claimSlot makes the fire the answer to the routine's latest slot, if that is recent, or to the one that it is told. Before
// anything else is done, so that whoever comes later finds it answered.
func (f *fire) claimSlot(ctx context.Context) error {
	if f.job.Kind != job.Routine || f.options.Moved {
		return nil
	}
	history, err := f.Slots.Note(ctx, []slot.Schedule{f.ScheduleOf(f.job)}, nil)
	f.warn(err) // the past may be told of less well, but the job runs
	at, err := f.slotOf(history[f.job.ID])
	if err != nil || at.IsZero() {
		return err
	}
	err = f.Slots.Claim(slot.Claim{Job: f.job.ID, Slot: at, Run: f.run, PID: f.Process.PID, PIDStart: f.Process.Start})
	if errors.Is(err, slot.ErrClaimed) {
		if f.rival = at; !f.yields() {
			f.giveWay(ctx, f.job.ID, at)
		}
		return nil
	}
	f.slot = at
	return err
}

// giveWay lets the run that has a slot begin, for a second at most: if one more fire took the job's lock before it, the slot would
// be skipped.
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

// slotOf is the slot that the fire is for; zero when it is for none, which a timer's may not be.
func (f *fire) slotOf(history []slot.Schedule) (at time.Time, err error) {
	now, zone := f.Disk.Now(), f.job.Zone(f.Zone)
	if late := f.options.Slot; !late.IsZero() {
		own, _ := f.job.Schedule.Prev(late, zone)
		_, former := forecast.Latest(history, f.Zone, late, late.Add(time.Nanosecond)) // of an expression that it had then
		if late.After(now) || !own.Equal(late) && !former {
			return at, slot.ErrNone
		}
		return late, nil
	}
	latest, ok := f.job.Schedule.Prev(now, zone)
	switch recent := ok && now.Sub(latest) <= slot.Grace; {
	case recent && f.job.Enabled:
		return latest, nil
	case f.options.Scheduled: // a timer that is stale; or an older slot, which is the tick's, if the routine catches up
		return at, slot.ErrNone
	}
	return at, nil // if it is not enabled, that is told where it is permitted
}

// beaten says whether a timer's fire is done, because another run answers its slot. Such a fire must not take the job's lock,
// not for a moment: the other run may be about to, and would be skipped.
func (f *fire) beaten() bool {
	return f.yields() && !f.Unanswered(f.job.ID, f.rival)
}

// cronDelay is how long after its minute began a line in a crontab may have been started for it.
const cronDelay = 2 * time.Minute

// yields says whether the fire is for a slot that somebody claimed before it, and not one more: a timer's always is, and that of
// a bare line in a crontab if it comes in the slot's own time.
func (f *fire) yields() bool {
	byTime := f.options.Scheduled || f.options.Cron && f.Disk.Now().Sub(f.rival) < cronDelay
	return byTime && !f.rival.IsZero()
}

// contest makes sure of the slot, as we hold the job's lock. A claim that another run has is taken over if it is void. If not, a
// timer's fire is done, and anybody else's is one more.
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
			Job: f.job.ID, Slot: at, Claimed: f.Disk.Now().In(f.Zone), Run: f.run, PID: f.Process.PID, PIDStart: f.Process.Start,
		})
	}
	f.slot, f.rival = time.Time{}, at
	if f.yields() {
		return slot.ErrClaimed
	}
	return nil
}

// void says whether a claim came to nothing: its process died before there was a record of the run. In this order, or a run that
// comes to its end between the two would look like one that never was. A slot that was given up under a clock that has been set
// back since may still be answered.
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

// Unanswered says whether nobody answers a slot: there is no claim, or one that came to nothing.
func (f *Runner) Unanswered(id string, at time.Time) bool {
	c, err := f.Slots.Load(id, at)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && f.void(c) && lock.Free(f.Home.JobLock(id))
}

// Miss records a slot as missed if no run answered it in time. The owner is told if a limit held it up.
func (f *Runner) Miss(ctx context.Context, id string, at time.Time) (missed bool, err error) {
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
	if c.Held != "" {
		err = f.reportMissed(ctx, id, at, c.Held)
	}
	return true, errors.Join(f.Slots.Rewrite(c), err)
}

// settleSlot notes in the ledger how the fire ended; one that came to no record has failed.
func (f *fire) settleSlot(outcome runlog.Outcome) {
	if f.slot.IsZero() {
		return
	}
	if outcome == "" {
		outcome = runlog.Failed
	}
	f.warn(f.Slots.Settle(f.job.ID, f.slot, f.run, string(outcome)))
}

// settleCutOff does so for a run whose process died.
func (f *Runner) settleCutOff(r runlog.Record) {
	if r.Kind == string(job.Routine) && r.Scheduled != nil {
		f.warn(f.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(runlog.Interrupted)))
	}
}

// settleKilled notes in the ledger how a run ended whose process was killed after the end of its record and before that note.
func (f *Runner) settleKilled(r runlog.Record) {
	if r.Kind != string(job.Routine) || r.Scheduled == nil {
		return
	}
	c, err := f.Slots.Load(r.Job, *r.Scheduled)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.warn(err)
	if err == nil && c.Run == r.ID && c.Outcome == "" {
		f.warn(f.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(r.Outcome)))
	}
}

// Due is what a minute has to do with the slots of one routine: the latest, if it is recent and nobody answers it. A slot before
// the file said so is none.
func (f *Runner) Due(j job.Job, history []slot.Schedule, now time.Time) (at time.Time, due bool) {
	at, due = forecast.Latest(history, f.Zone, now.Add(-slot.Grace), now.Add(time.Nanosecond))
	return at, due && f.Unanswered(j.ID, at)
}
