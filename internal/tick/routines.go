package tick

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/fire"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/schedule"
	"github.com/ollim/ollim/internal/slot"
	"github.com/ollim/ollim/internal/store"
)

// maxLook bounds how much of the past one minute accounts for, after a machine was off.
const maxLook = 24 * time.Hour

// routines starts the slots that nobody has claimed, and notes in the ledger those that nobody will.
func (m Minute) routines(ctx context.Context, shelf job.Shelf) error {
	jobs := shelf.Only(job.Routine).Jobs
	now := make([]slot.Schedule, len(jobs))
	for i, j := range jobs {
		now[i] = fire.ScheduleOf(j)
	}
	if err := m.Firer.Slots.Note(ctx, now, len(shelf.Faults) == 0); err != nil {
		return err
	}
	history, err := m.Firer.Slots.History()
	if err != nil {
		return err
	}
	paused, _, err := m.Firer.Spend.Paused()
	if err != nil {
		return err
	}
	late := map[string]time.Time{}
	for _, j := range jobs {
		if at, ok := m.missedLately(j, history[j.ID]); ok && !paused {
			late[j.ID] = at
		}
	}
	return errors.Join(m.startSlots(ctx, jobs, late, paused), m.account(history, late))
}

// startSlots starts what is due now, and late what may be caught up. While everything is paused the slots are paused too.
func (m Minute) startSlots(ctx context.Context, jobs []job.Job, late map[string]time.Time, paused bool) error {
	p, err := m.page()
	if err != nil {
		return err
	}
	var due []job.Job
	for _, j := range jobs {
		at, isDue := m.Firer.Due(j, m.now())
		_, isLate := late[j.ID]
		switch {
		case !isDue && !isLate || m.within(p.Started[j.ID], startTime):
		case paused:
			err = errors.Join(err, m.claim(j.ID, at, string(run.Paused)))
		case m.Firer.HeldBack(ctx, j, true):
			err = errors.Join(err, m.claim(j.ID, at, string(run.Refused)))
		default:
			if isDue {
				delete(late, j.ID) // one run for both; the older is missed
			}
			due = append(due, j)
		}
	}
	err = errors.Join(err, m.noteStarts(due))
	for _, j := range due {
		if at, isLate := late[j.ID]; isLate {
			err = errors.Join(err, m.StartLate(j, at))
		} else {
			err = errors.Join(err, m.Start(j))
		}
	}
	return err
}

// claim notes what became of a slot without a run, unless somebody has claimed it.
func (m Minute) claim(id string, at time.Time, outcome string) error {
	err := m.Firer.Slots.Claim(id, at, "", outcome)
	if errors.Is(err, slot.ErrClaimed) {
		return nil
	}
	return err
}

// missedLately is the newest slot that was missed and that the routine still wants run.
func (m Minute) missedLately(j job.Job, history []slot.Schedule) (at time.Time, ok bool) {
	if j.CatchUp == 0 || !j.Enabled {
		return at, false
	}
	for each := range schedule.Expected(history, m.Firer.Zone, m.now().Add(-j.CatchUp), m.now().Add(-schedule.Grace)) {
		at, ok = each, true
	}
	if !ok {
		return at, false
	}
	_, err := m.Firer.Slots.Load(j.ID, at)
	return at, errors.Is(err, fs.ErrNotExist)
}

// account notes as missed every slot, since the last minute that did this, that nobody claimed in time.
func (m Minute) account(history map[string][]slot.Schedule, late map[string]time.Time) error {
	p, err := m.page()
	if err != nil {
		return err
	}
	to := m.now().Add(-schedule.Grace)
	from := p.Accounted
	switch {
	case from.IsZero(), from.After(to): // the first minute, or the clock was set back
		from = to
	case to.Sub(from) > maxLook:
		to = from.Add(maxLook)
	}
	for id, schedules := range history {
		for at := range schedule.Expected(schedules, m.Firer.Zone, from, to) {
			if at.Equal(late[id]) {
				continue
			}
			err = errors.Join(err, m.claim(id, at, slot.Missed))
		}
	}
	if err != nil {
		return err // the same again in the next minute
	}
	p.Accounted = to
	return store.WriteJSON(m.pagePath(), p)
}
