package tick

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/slot"
)

// Waiting is a slot of a routine that waits until fewer fires are in progress. However long that takes, it is not missed.
type Waiting struct {
	Job  string    `json:"job"`
	Slot time.Time `json:"slot"`
}

func compareWaiting(a, b Waiting) int {
	return cmp.Or(a.Slot.Compare(b.Slot), cmp.Compare(a.Job, b.Job))
}

// waits reports whether a slot waits.
func (p *page) waits(id string, at time.Time) bool {
	_, found := slices.BinarySearchFunc(p.Waiting, Waiting{id, at}, compareWaiting)
	return found
}

// recount drops the slots that do not wait any more: those that have a run, and, as missed, those whose routine is gone or does not run here
// any more. A slot whose fire gave up is due like any other until the end of the grace.
func (s slots) recount(ctx context.Context, p *page, jobs []job.Job) (err error) {
	if len(p.Waiting) == 0 {
		return nil
	}
	routines, kept := map[string]job.Job{}, []Waiting(nil)
	for _, j := range jobs {
		routines[j.ID] = j
	}
	for _, w := range p.Waiting {
		j, known := routines[w.Job]
		c, loadErr := s.m.Runner.Slots.Load(w.Job, w.Slot) // the zero Claim if there is none
		why := ""
		switch {
		case loadErr != nil && !errors.Is(loadErr, fs.ErrNotExist): // the next tick looks again
			kept, err = append(kept, w), errors.Join(err, loadErr)
			continue
		case !s.m.firer().Slots.Unanswered(w.Job, w.Slot):
			continue
		case !known || !j.Enabled || s.m.firer().Rules.Elsewhere(j):
			why = "its routine was removed or disabled while the slot waited for other runs"
		case c.Held != "" && s.m.within(w.Slot, slot.Grace):
			continue
		case c.Held != "":
			why = c.Held
		}
		if why == "" {
			kept = append(kept, w)
			continue
		}
		if _, _, missErr := s.m.firer().Slots.Miss(ctx, w.Job, w.Slot, why); missErr != nil { // the next tick tries again
			kept, err = append(kept, w), errors.Join(err, missErr)
		}
	}
	if len(kept) == len(p.Waiting) {
		return err
	}
	p.Waiting = kept
	return errors.Join(err, s.m.save(p))
}

// queue returns the fires to start now, oldest slots first: all of them, or none if some wait already or more than Parallel would be in
// progress. Then all wait, because only the process that starts them knows how many it has started: a fire shows in its job's lock later.
func (s slots) queue(p *page, jobs []job.Job, answers []answer) (now []answer, err error) {
	slices.SortStableFunc(answers, func(a, b answer) int { return a.at.Compare(b.at) })
	if len(answers) > 0 && (len(p.Waiting) > 0 || s.m.Parallel != nil && len(answers)+Running(s.m.Runner.Home.JobLock, jobs, nil) > s.m.Parallel(jobs)) {
		before := p.Waiting
		p.Waiting = slices.Clone(before)
		for _, a := range answers {
			p.Waiting = append(p.Waiting, Waiting{a.job.ID, a.at})
		}
		slices.SortFunc(p.Waiting, compareWaiting)
		if err := s.m.save(p); err != nil {
			p.Waiting = before
			return answers, err // else they would be lost
		}
		answers = nil
	}
	if len(p.Waiting) > 0 {
		err = s.m.Drain()
	}
	return answers, err
}

// Running counts the routines whose lock is held, except for some.
func Running(lockOf func(id string) string, jobs []job.Job, except map[string]bool) (n int) {
	for _, j := range jobs {
		if j.Kind == job.Routine && !except[j.ID] && !lock.Free(lockOf(j.ID)) {
			n++
		}
	}
	return n
}

// Queued returns the slots that wait, oldest first, in UTC. Some may have a run already, because the next tick drops those.
func Queued(disk store.Disk, home paths.Dir) ([]Waiting, error) {
	p, err := store.ReadJSON[page](disk, pagePath(home))
	for i, w := range p.Waiting {
		p.Waiting[i].Slot = w.Slot.UTC() // so that two results can be compared by ==
	}
	return p.Waiting, err
}

// QueueFile is the file that Queued reads. A tick that changes it replaces it.
func QueueFile(home paths.Dir) string { return pagePath(home) }
