package fire

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Slots decides which slots of routines are due, and what became of them.
type Slots struct{ r *run.Runner }

// ScheduleOf returns the schedule of a routine's file, with the zone that is configured now.
func (s Slots) ScheduleOf(j job.Job) slot.Schedule {
	return slot.Schedule{Job: j.ID, Name: j.Name(), Cron: j.Cron, Zone: j.Zone(s.r.Zone).String(), Enabled: j.Enabled, Host: j.Host}
}

// attended reports whether the process that made a claim is alive. That of another PID namespace or machine shows only by the lock of its run,
// which it took before.
func (s Slots) attended(c slot.Claim) bool {
	return c.Alive() || c.Run != "" && !lock.Free(s.r.Home.RunLock(c.Run))
}

// void reports whether a claim has no run, because its process died before it wrote the record. The process is checked before the record,
// because a run may end between the two. A slot that was recorded as missed is open again if the clock has been set back since.
func (s Slots) void(c slot.Claim) bool {
	if c.Outcome != "" {
		return c.Run == "" && c.Claimed.After(s.r.Disk.Now())
	}
	if s.attended(c) {
		return false
	}
	_, err := s.r.Runs.Load(c.Run)
	return errors.Is(err, fs.ErrNotExist)
}

// Unanswered reports whether a slot has no claim, or a void one.
func (s Slots) Unanswered(id string, at time.Time) bool {
	open, _ := s.unanswered(id, at) // what cannot be read is no reason for another run
	return open
}

// unanswered is Unanswered. The error says why the claim cannot be read.
func (s Slots) unanswered(id string, at time.Time) (bool, error) {
	c, err := s.r.Slots.Load(id, at)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && s.void(c) && lock.Free(s.r.Home.JobLock(id)), err
}

// Miss records a slot as missed, and why, if it is unanswered. held reports whether it was missed because of a limit; the owner is then
// notified.
func (s Slots) Miss(ctx context.Context, id string, at time.Time, why string) (missed, held bool, err error) {
	err = s.r.Slots.Claim(slot.Claim{Job: id, Slot: at, Outcome: slot.Missed, Held: why})
	if !errors.Is(err, slot.ErrClaimed) {
		return err == nil, false, err
	}
	if !s.Unanswered(id, at) {
		return false, false, nil
	}
	guard, err := lock.TryGuard(s.r.Home.JobLock(id))
	if err != nil {
		return false, false, nil
	}
	defer guard.Release()
	c, err := s.r.Slots.Load(id, at)
	if err != nil || !s.void(c) {
		return false, false, err
	}
	if ran, err := s.ran(c, "", guard.LastNote()); ran || err != nil {
		return false, false, err
	}
	c.Outcome, c.Claimed = slot.Missed, s.r.Disk.Now().In(s.r.Zone)
	if held = c.Held != ""; held && c.Unasked {
		err = Reports(s).unasked(ctx, id, c.Held, notice.Count{Missed: 1})
	} else if held {
		err = Reports(s).missed(ctx, id, at, c.Held)
	} else {
		c.Held = why
	}
	if err != nil { // the next tick tries again
		return false, held, err
	}
	return true, held, s.r.Slots.Rewrite(c)
}

// idAge is how long before its claim a fire may have got the id of its run.
const idAge = 30 * time.Second

// ran reports whether the ledger has a run of a slot other than the run given, and then makes the claim of that run again: the claim that is
// there now is void, or was just made for the run given. last is the id of the job's latest run: if that began before the slot, the slot has
// none. The caller holds the job's lock.
func (s Slots) ran(c slot.Claim, run, last string) (bool, error) {
	if !c.Blank() && runlog.Began(last).Before(c.Slot.Add(-idAge)) {
		return false, nil
	}
	ran, err := s.r.Reclaim(c.Job, c.Slot, run)
	if c.Blank() && !ran && err == nil {
		s.r.Disk.Warn(s.r.Slots.Path(c.Job, c.Slot) + ": not valid, and the ledger has no run of this slot: the slot counts as unclaimed")
	}
	return ran, err
}

// settleCutOff removes the temporary files of a run whose process died, and notes in the claim that it did, or that the run waits for an
// answer all the same.
func (s Slots) settleCutOff(ctx context.Context, r runlog.Record) {
	s.r.Warn(s.r.Host.Sealing.Clear(ctx, r.ID))
	outcome := runlog.Interrupted
	if r.Outcome == runlog.Waiting {
		outcome = r.Outcome
	}
	if r.Kind == string(job.Routine) && r.Scheduled != nil {
		s.r.Warn(s.r.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(outcome)))
	}
}

// settleKilled notes in the claim how a run ended whose process was killed between the end of its record and that note.
func (s Slots) settleKilled(r runlog.Record) {
	if r.Kind != string(job.Routine) || r.Scheduled == nil {
		return
	}
	c, err := s.r.Slots.Load(r.Job, *r.Scheduled)
	if !errors.Is(err, fs.ErrNotExist) {
		s.r.Warn(err)
	}
	if c.Run == r.ID && c.Outcome != string(r.Outcome) && (c.Outcome == "" || c.Outcome == string(runlog.Waiting)) {
		s.r.Warn(s.r.Slots.Settle(r.Job, *r.Scheduled, r.ID, string(r.Outcome)))
	}
}

// Due returns the latest slot of a routine and reports whether it is recent and unanswered. Times before the file had its schedule are not
// slots. The error says why the slot's claim cannot be read.
func (s Slots) Due(j job.Job, history []slot.Schedule, now time.Time) (at time.Time, due bool, err error) {
	history = slot.Here(history, s.r.Host.Name)
	if at, due = forecast.Latest(history, s.r.Zone, now.Add(-slot.Grace), now.Add(time.Nanosecond)); !due || Rules(s).Elsewhere(j) {
		return at, false, nil
	}
	due, err = s.unanswered(j.ID, at)
	return at, due, err
}

// settleAge is how long after the beginning of a run EndOrphans checks that its slot has the outcome.
const settleAge = time.Hour

// settleLately calls settleKilled for the runs of the last hour whose records were written since an instant. A later look at the slot of a
// longer run finds the outcome in its record.
func (s Slots) settleLately(ctx context.Context, written time.Time) {
	for r, err := range s.r.Runs.Written(s.r.Disk.Now().Add(-settleAge), written) {
		if s.r.Warn(err); err != nil || ctx.Err() != nil {
			return
		}
		if r.Done() {
			s.settleKilled(r)
		}
	}
}

// EndOrphans ends the records of runs that began since an instant and whose process died. An engine that outlived the process is
// ended at the run's time limit. The failure is reported as the next fire would. Of a run that waits for an answer it ends only the
// question, if its file is gone. When ctx ends, the rest is left to the next call. An earlier call has seen the records that were written
// before the instant seen; the zero time means that there was none.
func (s Slots) EndOrphans(ctx context.Context, since, seen time.Time) {
	s.settleLately(ctx, seen)
	open, waiting, err := s.r.Runs.Unfinished(since)
	s.r.Warn(err)
	for _, r := range waiting {
		_, err := Answers(s).awaited(ctx, r)
		s.r.Warn(err)
	}
	for _, r := range open {
		if ctx.Err() != nil {
			return
		}
		if s.r.Runs.Attended(r) || r.Kind == string(job.Webhook) && s.r.Inbox.Waits(r.ID) { // its run has not begun, and will be started again
			continue
		}
		// The native engine ended with its process; a command that it left behind holds the lock for no engine.
		if r.Engine != engine.Native && s.r.Runs.Alive(r) {
			if r.Deadline == nil || s.r.Disk.Now().Before(*r.Deadline) {
				continue
			}
		}
		s.endOrphan(ctx, r)
	}
}

func (s Slots) endOrphan(ctx context.Context, r runlog.Record) {
	cutOff, err := s.r.Runs.CloseOf(r)
	s.r.Warn(err)
	closed, err := s.r.Runs.Load(r.ID)
	if err != nil || !closed.Done() { // it continues in another process
		return
	}
	if !cutOff {
		return
	}
	s.settleCutOff(ctx, closed)
	isJob := r.Kind == string(job.Routine) || r.Kind == string(job.Webhook) // a reminder is tried again, and reported at the end
	if closed.Outcome != runlog.Waiting && isJob {
		Reports(s).failure(ctx, closed, "was cut off before it ended")
	}
	if left := s.r.Runs.Leftover(s.r.Home.RunLock(r.ID)); left != nil {
		Reports(s).leftover(ctx, closed, left)
	}
}

// claim is the claim of a fire on a slot of its routine.
type claim struct {
	r       *run.Runner
	job     job.Job
	trigger Trigger
	run     string
	at      time.Time // slot that the fire runs for; zero: none
	rival   time.Time // a slot that another run had claimed before
}

// take claims the slot that Options names, else the routine's latest one if that is recent. It comes before anything else, so
// that a later fire finds the slot claimed.
func (c *claim) take(ctx context.Context) error {
	if c.job.Kind != job.Routine {
		return nil
	}
	history, err := c.r.Slots.Note(ctx, []slot.Schedule{Slots{c.r}.ScheduleOf(c.job)}, nil)
	c.r.Warn(err) // the history of schedules is incomplete, but the job runs
	at, err := c.slotOf(history[c.job.ID])
	if err != nil || at.IsZero() {
		return err
	}
	err = c.r.Slots.Claim(slot.Claim{Job: c.job.ID, Slot: at, Run: c.run, PID: c.r.Host.Process().PID, PIDStart: c.r.Host.Process().Start})
	if errors.Is(err, slot.ErrClaimed) {
		if c.rival = at; !c.yields() {
			c.giveWay(ctx, c.job.ID, at)
		}
		return nil
	}
	c.at = at
	return err
}

// giveWay waits until the run that claimed a slot has the job's lock or has begun: if this fire took the lock before that run, the slot would
// be skipped. It waits for a minute at most: longer than a process that is alive needs, also on a busy machine.
func (c *claim) giveWay(ctx context.Context, id string, at time.Time) {
	const step = 10 * time.Millisecond
	for waited := time.Duration(0); waited < time.Minute && lock.Free(c.r.Home.JobLock(id)); waited += step {
		held, _ := c.r.Slots.Load(id, at) // nobody attends one that cannot be read
		if held.Outcome != "" || !(Slots{c.r}).attended(held) {
			return
		}
		if _, err := c.r.Runs.Load(held.Run); !errors.Is(err, fs.ErrNotExist) || c.r.Host.Sleep(ctx, step) != nil {
			return
		}
	}
}

// slotOf returns the slot that the fire is for, zero if it is for none. A timer's fire for no slot is an ErrNone.
func (c *claim) slotOf(history []slot.Schedule) (at time.Time, err error) {
	now, zone := c.r.Disk.Now(), c.job.Zone(c.r.Zone)
	if late := c.trigger.Slot; !late.IsZero() {
		own, _ := c.job.Schedule.Prev(late, zone)
		_, former := forecast.Latest(history, c.r.Zone, late, late.Add(time.Nanosecond)) // of the expression at that time
		if late.After(now) || !own.Equal(late) && !former {
			return at, slot.ErrNone
		}
		return late, nil
	}
	latest, ok := c.job.Schedule.Prev(now, zone)
	switch recent := ok && now.Sub(latest) <= slot.Grace; {
	case recent && c.job.Enabled:
		return latest, nil
	case c.trigger.Scheduled: // the timer is stale, or the slot is older, which tick starts late if the routine catches up
		return at, slot.ErrNone
	}
	return at, nil // permit reports a routine that is not enabled
}

// cronDelay is how long after the beginning of its minute cron may start a line of a crontab.
const cronDelay = 2 * time.Minute

// yields reports whether the fire gives way to the run that claimed its slot. A timer's fire always does. The fire of a crontab's line does
// within cronDelay of the slot. Any other fire is an additional run.
func (c *claim) yields() bool {
	if c.rival.IsZero() {
		return false
	}
	return c.trigger.Scheduled || c.trigger.Cron != nil && c.r.Disk.Now().Sub(c.rival) < cronDelay && c.trigger.Cron()
}

// contest checks the claim of the slot under the job's lock. A void claim of another run is taken over, unless the ledger has a run of the
// slot. A valid one leaves a timer's fire with nothing to do, and makes any other fire an additional run. last is the id of the job's latest
// run.
func (c *claim) contest(last string) error {
	at := c.at
	if at.IsZero() {
		at = c.rival
	}
	if at.IsZero() {
		return nil
	}
	held, err := c.r.Slots.Load(c.job.ID, at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if own := held.Run == c.run; err == nil && (own || (Slots{c.r}).void(held)) {
		ran, err := Slots{c.r}.ran(held, c.run, last)
		switch {
		case err != nil:
			return err
		case !ran && own:
			return nil
		case !ran:
			c.at = at
			return c.r.Slots.Rewrite(slot.Claim{
				Job: c.job.ID, Slot: at, Claimed: c.r.Disk.Now().In(c.r.Zone), Won: held.Won, Run: c.run, PID: c.r.Host.Process().PID, PIDStart: c.r.Host.Process().Start,
			})
		}
	}
	c.at, c.rival = time.Time{}, at
	if c.yields() {
		return slot.ErrClaimed
	}
	return nil
}

// settle notes in the claim how the fire ended. A fire without a record has failed.
func (c *claim) settle(outcome runlog.Outcome) {
	if c.at.IsZero() {
		return
	}
	if outcome == "" {
		c.r.Warn(c.r.Slots.Fail(c.job.ID, c.at, c.run, string(runlog.Failed)))
		return
	}
	c.r.Warn(c.r.Slots.Settle(c.job.ID, c.at, c.run, string(outcome)))
}
