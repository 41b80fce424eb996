package tick

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Bounds of what one minute accounts for, after a machine was off.
const (
	maxLook   = 24 * time.Hour // of the past
	maxMissed = 1000           // slots that one minute records as missed; the next minute records the rest
)

// again is how much of the past each minute accounts for once more: a power cut may have lost the last notes, and the process of a
// claim may have died since.
const again = 10 * time.Minute

// noteEvery is how far accounting may get ahead of the time in the page. The minutes between do not write the page, and account for that
// time again.
const noteEvery = 5 * time.Minute

// slots starts the routines whose slots are due, and accounts for the slots of the past.
type slots struct{ m Minute }

// routines starts the unclaimed slots that are due, and records as missed those that will not be started.
func (s slots) routines(ctx context.Context, files job.Set) error {
	jobs := files.Only(job.Routine).Jobs
	now := make([]slot.Schedule, len(jobs))
	for i, j := range jobs {
		now[i] = s.m.firer().Slots.ScheduleOf(j)
	}
	history, noteErr := s.m.Runner.Slots.Note(ctx, now, func(name string) bool {
		return !slices.ContainsFunc(files.Faults, func(f *yamldoc.Fault) bool { return filepath.Base(f.File) == name+".md" })
	})
	for i, j := range jobs { // jobs fire even if their schedules could not be noted
		history[j.ID] = slot.Extend(history[j.ID], now[i], s.m.now())
	}
	paused, _, err := s.m.Runner.Spend.Paused()
	if err != nil {
		return errors.Join(noteErr, err)
	}
	p, err := s.m.page()
	if err == nil {
		err = s.recount(ctx, p, jobs)
	}
	if err != nil {
		return errors.Join(noteErr, err)
	}
	late := map[string]time.Time{}
	for _, j := range jobs {
		if at, ok := s.missedLately(j, history[j.ID]); ok && !paused && !p.waits(j.ID, at) {
			late[j.ID] = at
		}
	}
	err = s.startSlots(ctx, jobs, history, late, paused)
	if noteErr != nil { // the missed slots are not known
		return errors.Join(noteErr, err)
	}
	return errors.Join(err, s.account(ctx, files.Faults, history, late))
}

// answer is a fire to start for a slot.
type answer struct {
	job  job.Job
	at   time.Time
	late bool
}

// startSlots starts what is due now, and late what may be caught up. While everything is paused the slots are paused too.
func (s slots) startSlots(ctx context.Context, jobs []job.Job, history map[string][]slot.Schedule, late map[string]time.Time, paused bool) error {
	p, err := s.m.page()
	if err != nil {
		return err
	}
	var answers []answer
	lates := 0
	for _, j := range jobs {
		a := answer{job: j}
		var due bool
		var dueErr error
		a.at, due, dueErr = s.m.firer().Slots.Due(j, history[j.ID], s.m.now())
		err = errors.Join(err, dueErr)
		if due {
			if at, isLate := late[j.ID]; isLate { // one run for both
				delete(late, j.ID)
				_, _, missErr := s.m.firer().Slots.Miss(ctx, j.ID, at, oneForBoth)
				err = errors.Join(err, missErr)
			}
		} else if a.at, a.late = late[j.ID]; !a.late {
			continue
		}
		switch started := p.Started[j.ID]; {
		case p.waits(j.ID, a.at):
		case !started.Before(a.at) && s.m.within(started, startTime): // for this slot, and it has not claimed it yet
		case paused:
			err = errors.Join(err, s.claim(a, runlog.Paused))
		case s.m.firer().Rules.HeldBack(ctx, j, true):
			err = errors.Join(err, s.claim(a, runlog.Refused))
		case a.late && lates == maxStarts: // in the next minute
		default:
			answers = append(answers, a)
			if a.late {
				lates++
			}
		}
	}
	now, queueErr := s.queue(p, jobs, answers)
	return errors.Join(err, s.startAll(now), queueErr)
}

func (s slots) startAll(answers []answer) error {
	var jobs []job.Job
	for _, a := range answers {
		jobs = append(jobs, a.job)
	}
	err := s.m.noteStarts(jobs)
	for _, a := range answers {
		if a.late {
			err = errors.Join(err, s.m.StartLate(a.job, a.at))
		} else {
			err = errors.Join(err, s.m.Start(a.job))
		}
	}
	return err
}

// claim records the outcome of a slot without a run, unless the slot is claimed.
func (s slots) claim(a answer, outcome runlog.Outcome) error {
	err := s.m.Runner.Slots.Claim(slot.Claim{Job: a.job.ID, Slot: a.at, Outcome: string(outcome)})
	if errors.Is(err, slot.ErrClaimed) {
		return nil
	}
	return err
}

// missedLately returns the newest missed slot that the routine still catches up.
func (s slots) missedLately(j job.Job, history []slot.Schedule) (at time.Time, ok bool) {
	if j.CatchUp == 0 || !j.Enabled || s.m.firer().Rules.Elsewhere(j) {
		return at, false
	}
	back := min(j.CatchUp, time.Duration(s.m.Keep)*24*time.Hour) // what is older has no claim any more, whether it ran or not
	history = slot.Here(history, s.m.Runner.Host.Name)
	at, ok = forecast.Latest(history, s.m.Runner.Zone, s.m.now().Add(-back), s.m.now().Add(-slot.Grace))
	return at, ok && s.m.firer().Slots.Unanswered(j.ID, at)
}

// account records as missed every unanswered slot since the last call, except for those that are still to run late, which it notes in the
// page.
func (s slots) account(ctx context.Context, faults yamldoc.Faults, history map[string][]slot.Schedule, late map[string]time.Time) error {
	p, err := s.m.page()
	if err != nil {
		return err
	}
	for id, at := range p.Owed {
		if list := history[id]; len(list) > 0 && process.Elsewhere(list[len(list)-1].Host, s.m.Runner.Host.Name) {
			late[id] = at // its own machine catches it up
		}
	}
	latest := s.m.now().Add(-slot.Grace)
	to, from := latest, p.Accounted.Add(-again)
	early := p.Missed != nil && p.Missed.To.After(latest) // counted at a wrong date: these slots are still to come
	if early {
		p.Missed = nil
	}
	switch {
	case p.Accounted.IsZero(), from.After(to): // the first minute, or the clock was set back
		from = to
	case to.Sub(from) > maxLook:
		to = from.Add(maxLook)
	}
	c := &census{page: p, faults: faults, off: !p.Accounted.IsZero() && latest.Sub(p.Accounted) > offAfter}
	own := map[string][]slot.Schedule{}
	for id, list := range history {
		own[id] = slot.Here(list, s.m.Runner.Host.Name)
	}
	done, err := s.miss(ctx, c, own, late, from, to)
	if err = errors.Join(err, s.accountBound(ctx, c, history, late, latest)); err != nil {
		return err
	}
	if err = errors.Join(err, s.countByFile(ctx, c)); err != nil {
		return err // the same again in the next minute
	}
	for id, at := range p.Owed {
		if !late[id].Equal(at) && !p.waits(id, at) { // it ran, or is not caught up any more
			if _, _, err := s.m.firer().Slots.Miss(ctx, id, at, "it was too late to catch up"); err != nil {
				return err
			}
		}
	}
	if done.Equal(latest) && p.Missed != nil && !s.m.within(p.MissedTold, missedAgain) {
		if err := s.tellMissed(ctx, p, len(late)); err != nil {
			return err
		}
		p.Missed, p.MissedTold = nil, s.m.now()
		return s.accounted(p, done, late)
	}
	if ahead := done.Sub(p.Accounted); done.Equal(to) && ahead >= 0 && ahead < noteEvery && maps.EqualFunc(p.Owed, late, time.Time.Equal) && !c.added && !early && !c.bound {
		return nil
	}
	return s.accounted(p, done, late)
}

func (s slots) accounted(p *page, done time.Time, late map[string]time.Time) error {
	p.Accounted, p.Owed = done, late
	return s.m.save(p)
}

// accountBound is account for the routines that are bound to this machine. Another machine that has the same directory may have gone on with
// account while this one was off, but leaves their slots out.
func (s slots) accountBound(ctx context.Context, c *census, history map[string][]slot.Schedule, late map[string]time.Time, latest time.Time) error {
	name, bound := s.m.Runner.Host.Name, map[string][]slot.Schedule{}
	for id, list := range history {
		if list = slot.Bound(list, name); list != nil {
			bound[id] = list
		}
	}
	from, known := c.page.Bound[name]
	switch {
	case len(bound) == 0:
		c.bound = known
		delete(c.page.Bound, name)
		return nil
	case !known:
		c.bound = true
		from = latest
	case latest.Sub(from) < noteEvery && !from.After(latest):
		return nil
	}
	c.bound = true
	c.off = c.off || latest.Sub(from) > offAfter
	to := latest
	if to.Sub(from) > maxLook {
		to = from.Add(maxLook)
	}
	done, err := s.miss(ctx, c, bound, late, from.Add(-again), to)
	if err == nil {
		if c.page.Bound == nil {
			c.page.Bound = map[string]time.Time{}
		}
		c.page.Bound[name] = done
	}
	return err
}

// miss records the slots missed in [from, to), and returns up to when it did.
func (s slots) miss(ctx context.Context, c *census, history map[string][]slot.Schedule, late map[string]time.Time, from, to time.Time) (done time.Time, err error) {
	type instant struct {
		at  time.Time
		job string
	}
	var slots []instant
	for id, schedules := range history {
		for at := range forecast.Expected(schedules, s.m.Runner.Zone, from, to) {
			if wanted, isLate := late[id]; (!isLate || !at.Equal(wanted)) && !c.page.waits(id, at) {
				slots = append(slots, instant{at, id})
			}
		}
	}
	slices.SortStableFunc(slots, func(a, b instant) int { return a.at.Compare(b.at) })
	noted := 0
	for _, one := range slots {
		if noted == maxMissed {
			return one.at, nil
		}
		why, fault := c.why(history[one.job])
		missed, held, err := s.m.firer().Slots.Miss(ctx, one.job, one.at, why)
		if err != nil {
			return from, err
		}
		if missed {
			noted++
		}
		if missed && !held {
			c.add(one.job, one.at, fault)
		}
	}
	return to, nil
}

// Quiet is how long ago Seen may be while ticks come each minute.
const Quiet = noteEvery + 2*time.Minute

// never returns the time that the tick's lock file has before a scheduler's first tick.
func never() time.Time { return time.Unix(0, 0) }

// Seen returns the time of the latest tick that nobody typed: the time of the tick's lock file. Without that file it is the time in the
// page, which may be five minutes older, because not every tick writes the page. It is zero before the first tick. Seen changes nothing.
func Seen(home paths.Dir) (time.Time, error) {
	noted, err := noted(home)
	info, statErr := os.Stat(lockPath(home))
	switch {
	case statErr != nil || noted.IsZero():
		return noted, err
	case !info.ModTime().After(never()):
		return time.Time{}, err
	}
	return info.ModTime(), err
}

// Coming is Seen, and reports whether ticks come each minute.
func Coming(home paths.Dir, now time.Time) (seen time.Time, coming bool, err error) {
	seen, err = Seen(home)
	return seen, now.Sub(seen) <= Quiet, err
}

// lockPath returns the lock file of ticks. Nothing else writes it or sets its time.
func lockPath(home paths.Dir) string { return home.Lock("tick") }

// noted returns the time in the page up to which slots are recorded.
func noted(home paths.Dir) (time.Time, error) {
	path := pagePath(home)
	p, invalid, err := store.PeekJSON[page](path)
	if invalid != nil {
		err = fmt.Errorf("%s: not valid: %w", path, invalid)
	}
	if err != nil || p.Accounted.IsZero() {
		return time.Time{}, err
	}
	return p.Accounted.Add(slot.Grace), nil
}
