package forecast

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Outcomes of slots that are none of a run's.
const (
	Running     = "running"
	Queued      = "queued"       // it waits until fewer routines run, which this package cannot see
	Unaccounted = "unaccounted"  // nobody knows
	Elsewhere   = slot.Elsewhere // also of a job that was bound to another machine, and no record of the slot is kept here
)

// Answer is what became of one slot.
type Answer struct {
	Slot    time.Time `json:"slot"`
	Job     string    `json:"job"`
	Name    string    `json:"name"`
	Outcome string    `json:"outcome"`
	Run     string    `json:"run,omitempty"`
	Why     string    `json:"-"` // why a slot was missed, or is elsewhere
}

// Problem reports whether the slot has no run that went well, or that may still do so, for another reason than a closed gate or a pause.
func (a Answer) Problem() bool {
	switch a.Outcome {
	case Running, Queued, string(runlog.OK), string(runlog.Gated), string(runlog.Waiting), string(runlog.Paused), Elsewhere:
		return false
	}
	return true
}

// Note returns what the outcome of a slot means that has no record of a run.
func (a Answer) Note() string {
	switch a.Outcome {
	case slot.Missed:
		return "nothing ran: " + a.Why
	case Elsewhere:
		return a.Why
	case Queued:
		return "it waits until fewer routines run: see limits.parallel in ollim-schedules(7)"
	case Unaccounted:
		return "no scheduler worked, or the process died before it made a record"
	}
	return "no record of it is kept"
}

// Expected yields the slots that a job should have had in [from, to), by what its file said at the time. zone is that of
// schedules without one of their own.
func Expected(history []slot.Schedule, zone *time.Location, from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for i, s := range history {
			begin, end, expr, ok := inForce(history, i, from, to)
			if !ok {
				continue
			}
			for at := range expr.Between(begin.Add(-time.Nanosecond), end, s.In(zone)) {
				if at.Before(end) && !yield(at) {
					return
				}
			}
		}
	}
}

// Latest is the last of Expected.
func Latest(history []slot.Schedule, zone *time.Location, from, to time.Time) (time.Time, bool) {
	for i, s := range slices.Backward(history) {
		begin, end, expr, ok := inForce(history, i, from, to)
		if !ok {
			continue
		}
		if at, ok := expr.Prev(end.Add(-time.Nanosecond), s.In(zone)); ok && !at.Before(begin) {
			return at, true
		}
	}
	return time.Time{}, false
}

// inForce is the part of [from, to) in which the i-th schedule was that of the job, and its expression; not ok when there is no such
// part, or it was switched off, gone, or noted by a version that knew more.
func inForce(history []slot.Schedule, i int, from, to time.Time) (begin, end time.Time, expr cron.Schedule, ok bool) {
	begin, end = later(from, history[i].At), to
	if i+1 < len(history) && history[i+1].At.Before(to) {
		end = history[i+1].At
	}
	if !history[i].Enabled || !begin.Before(end) {
		return begin, end, expr, false
	}
	expr, err := cron.Parse(history[i].Cron)
	return begin, end, expr, err == nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Audit says what became of every slot in [from, to), by time. look finds the outcome of a claim's run when that does not say it: "" is
// one that is in progress. machine is the name of this one.
func Audit(book slot.Book, from, to time.Time, machine string, look func(slot.Claim) string) ([]Answer, error) {
	history, err := book.History()
	if err != nil {
		return nil, err
	}
	ids := slices.Sorted(maps.Keys(history))
	parts := make([][]Answer, len(ids))
	failures := make([]error, len(ids))
	workers := min(runtime.GOMAXPROCS(0), len(ids)) // each reads many small files
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(ids); i += workers {
				parts[i], failures[i] = auditJob(book, ids[i], history[ids[i]], from, to, machine, look)
			}
		})
	}
	all.Wait()
	answers := slices.Concat(parts...)
	slices.SortStableFunc(answers, func(a, b Answer) int { return cmp.Or(a.Slot.Compare(b.Slot), cmp.Compare(a.Job, b.Job)) })
	return answers, errors.Join(failures...)
}

func auditJob(book slot.Book, id string, history []slot.Schedule, from, to time.Time, machine string, look func(slot.Claim) string) (answers []Answer, err error) {
	claims := book.Reader(id)
	for at := range Expected(history, book.Zone, from, to) {
		a := Answer{Slot: at.In(book.Zone), Job: id, Name: history[len(history)-1].Name, Outcome: Unaccounted}
		c, err := claims.Load(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if host := hostAt(history, at); process.Elsewhere(host, machine) {
				a.Outcome, a.Why = Elsewhere, "only "+host+" runs it, and no record of it is kept here"
			}
		case err != nil:
			return answers, err
		default:
			a.Run, a.Outcome, a.Why = c.Run, c.Outcome, cmp.Or(c.Held, slot.WasOff)
			if c.Outcome == "" {
				a.Outcome = cmp.Or(look(c), Running)
			}
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// hostAt returns the machine that a job was bound to at an instant, "" if none.
func hostAt(history []slot.Schedule, at time.Time) string {
	for _, s := range slices.Backward(history) {
		if !s.At.After(at) {
			return s.Host
		}
	}
	return ""
}
