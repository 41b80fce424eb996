package fire

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// ErrNotNext is the error of an entry of the inbox that must wait for an earlier entry of its webhook.
var ErrNotNext = errors.New("an earlier event of this webhook waits")

// answered is the entry of the inbox that a fire runs; nil: none.
type answered struct {
	inbox.Entry

	r     *run.Runner
	taken bool // moved to the directory of the run
}

// begun returns the record of the entry's run if it has ended, or an error if the run must not begin. An unfinished record whose process
// died before it took the entry is removed. The caller holds the job's lock.
func (e *answered) begun(ctx context.Context, j job.Job) (runlog.Record, error) {
	none := runlog.Record{}
	first, _, err := e.r.Inbox.First(e.Hook)
	switch {
	case errors.Is(err, inbox.ErrGone), err == nil && first.Run != e.Run && !e.r.Inbox.Waits(e.Run):
		return none, inbox.ErrGone
	case err != nil:
		return none, err
	case first.Run != e.Run:
		return none, ErrNotNext
	}
	stale, err := e.r.Runs.At(e.Run)
	if err == nil && stale.Done() { // the run was refused before its entry was taken
		return stale.Record, e.take()
	}
	if err == nil {
		err = errors.Join(e.r.Spend.Release(ctx, stale.Account(), 0), stale.Remove())
		e.r.Warn(err)
	}
	return none, Rules{e.r}.heldBack(j)
}

// take moves the entry out of the inbox into the directory of the run. From then on the run is never started again.
func (e *answered) take() error {
	if e == nil || e.taken {
		return nil
	}
	e.taken = true
	return e.r.Inbox.Claim(e.Entry)
}

// giveBack moves the entry of a run that did not take place back into the inbox. It notifies the owner of a limit that only the owner or
// time can end.
func (e *answered) giveBack(ctx context.Context, run *runlog.Run, later *run.Later) error {
	if e == nil {
		return nil
	}
	if !later.Limit.Passing {
		record := run.Record
		record.Error = later.Error() + "; its events wait"
		e.r.ReportRefusal(ctx, record, later.Refusal(), 0)
	}
	if !e.taken {
		return nil
	}
	e.taken = false
	return e.r.Inbox.GiveBack(e.Entry)
}

// Entries starts runs for what waits in the inbox.
type Entries struct{ r *run.Runner }

// recheck is the longest time until an entry that cannot be started now is checked again.
const recheck = time.Minute

// Start starts processes for the entries of the inbox that can run now: the oldest of each webhook, while none of its runs is
// in progress, at most Limits.Jobs in all. start starts a process that calls FireEntry. The result is when the next call may find
// more to do; 0 if nothing waits.
func (b Entries) Start(ctx context.Context, start func(run string) (process.ID, error)) (again time.Duration, err error) {
	if hooks, err := b.r.Inbox.Hooks(); len(hooks) == 0 && err == nil {
		return 0, nil // without entries it needs no lock
	}
	held, err := b.r.Inbox.LockStarts(ctx)
	if err != nil {
		return recheck, err
	}
	defer held.Release()
	due, running, again, err := b.due(ctx, true)
	for _, d := range due {
		if running >= b.r.Inbox.Limits.Jobs {
			break
		}
		starts := d.starts.Started(d.Run, process.ID{}, b.r.Disk.Now(), d.limit.Per)
		// the disk is full: the process would fail, and be started again at once
		if noteErr := b.r.Inbox.NoteStarts(d.Hook, starts); noteErr != nil {
			err = errors.Join(err, noteErr)
			continue
		}
		p, startErr := start(d.Run)
		if startErr == nil {
			running++
		}
		starts.Process = p
		err = errors.Join(err, startErr, b.r.Inbox.NoteStarts(d.Hook, starts))
	}
	return again, err
}

// Plan returns the entries that Start would start, and changes nothing.
func (b Entries) Plan(ctx context.Context) ([]inbox.Entry, error) {
	due, running, _, err := b.due(ctx, false)
	var plan []inbox.Entry
	for _, d := range due[:min(len(due), max(b.r.Inbox.Limits.Jobs-running, 0))] {
		plan = append(plan, d.Entry)
	}
	return plan, err
}

// dueEntry is an entry to start.
type dueEntry struct {
	inbox.Entry

	limit  job.Rate
	starts inbox.Starts
}

// due returns the entries to start, oldest first, the number of webhooks with a run in progress, and when to check again. If tell is set,
// it reports what prevents a webhook from running.
func (b Entries) due(ctx context.Context, tell bool) (due []dueEntry, running int, again time.Duration, err error) {
	waiting, err := b.first()
	if len(waiting) == 0 {
		return nil, 0, 0, err
	}
	again = recheck
	if paused, _, pausedErr := b.r.Spend.Paused(); paused || pausedErr != nil {
		return nil, 0, again, errors.Join(err, pausedErr)
	}
	files, filesErr := b.r.Jobs.Load()
	if filesErr != nil {
		return nil, 0, again, errors.Join(err, filesErr)
	}
	if tell {
		Reports(b).gone(ctx, files, waiting)
	}
	for _, j := range files.Only(job.Webhook).Jobs {
		if Rules(b).Elsewhere(j) {
			continue
		}
		e, waits := waiting[j.ID]
		if !lock.Free(b.r.Home.JobLock(j.ID)) {
			running++
			if !waits || !tell {
				continue
			}
			// otherwise the last run is in progress, and the search of all processes is not needed
			if last, _ := b.r.Runs.Noted(b.r.Home.JobLock(j.ID)); last.Done() {
				if left := b.r.Runs.Leftover(b.r.Home.JobLock(j.ID)); left != nil {
					Reports(b).leftover(ctx, last, left)
				}
			}
			continue
		}
		if !waits {
			continue
		}
		s, startsErr := b.r.Inbox.Starts(j.ID)
		err = errors.Join(err, startsErr)
		if s.Pending(e.Run) {
			running++
			continue
		}
		limit := j.Hook.RateLimit
		if wait := s.Wait(e.Run, b.r.Disk.Now(), limit.N, limit.Per); wait > 0 {
			again = min(again, wait)
		} else if !Rules(b).HeldBack(ctx, j, tell) {
			due = append(due, dueEntry{e, limit, s})
		}
	}
	slices.SortStableFunc(due, func(a, b dueEntry) int { return a.Arrived.Compare(b.Arrived) })
	return due, running, again, err
}

// first returns the oldest entry of each webhook that has one.
func (b Entries) first() (map[string]inbox.Entry, error) {
	hooks, err := b.r.Inbox.Hooks()
	first := map[string]inbox.Entry{}
	for _, hook := range hooks {
		e, _, firstErr := b.r.Inbox.First(hook)
		switch {
		case firstErr == nil:
			first[hook] = e
		case !errors.Is(firstErr, inbox.ErrGone):
			err = errors.Join(err, firstErr)
		}
	}
	return first, err
}
