package tick

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// page is state/tick.json.
type page struct {
	Tidied  string               `json:"tidied"`            // the day of the last daily work
	Settled time.Time            `json:"settled,omitzero"`  // the time by which the age of what is kept is judged, see settle
	Pending time.Time            `json:"pending,omitzero"`  // becomes Settled when the clock has advanced from there
	Idled   time.Time            `json:"idled,omitzero"`    // the records of fires that did nothing were removed up to here
	Started map[string]time.Time `json:"started,omitempty"` // by job, what was started in the last minute

	Summary string `json:"summary,omitempty"` // the Monday whose summary was the last; "": none was asked for
	Release string `json:"release,omitempty"` // the id of that summary, until it is in the outbox

	Accounted time.Time            `json:"accounted"`      // up to here every slot is recorded, except for those in Owed
	Owed      map[string]time.Time `json:"owed,omitempty"` // by job, the slots that are still to run late

	Bound map[string]time.Time `json:"bound,omitempty"` // by machine, Accounted for the slots of routines that are bound to it

	Waiting []Waiting `json:"waiting,omitempty"` // slots that wait because Minute.Parallel fires are in progress, by time

	Missed     *missedSlots `json:"missed,omitempty"`     // slots whose message has not been sent
	MissedTold time.Time    `json:"missed_told,omitzero"` // when the last message about missed slots was sent
}

func pagePath(home paths.Dir) string { return home.State("tick.json") }

// page returns the page, which Pass reads once; the tick's lock keeps it from changing.
func (m Minute) page() (*page, error) {
	if m.read != nil {
		return m.read()
	}
	p, err := store.ReadJSON[page](m.Runner.Disk, pagePath(m.Runner.Home))
	return &p, err
}

func (m Minute) save(p *page) error {
	return store.WriteJSON(pagePath(m.Runner.Home), p, store.Buffered)
}

// noteStarts records the jobs that are about to be started. Until a fire takes its job's lock, nothing else shows that it was started.
func (m Minute) noteStarts(jobs []job.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	p, err := m.page()
	if err != nil {
		return err
	}
	started := map[string]time.Time{}
	for id, at := range p.Started {
		if m.within(at, startTime) {
			started[id] = at
		}
	}
	for _, j := range jobs {
		started[j.ID] = m.now()
	}
	p.Started = started
	return m.save(p)
}

// daily is what is done in the first minute of a day, after everything that is due. An agent may have left any number of files, so the next
// minute removes what could not be removed in time. done reports whether that minute was this one.
func (m Minute) daily(ctx, sending context.Context) (done bool, err error) {
	f := m.Runner
	today := m.now().In(f.Zone).Format(time.DateOnly)
	p, err := m.page()
	if err != nil || p.Tidied == today {
		return false, err
	}
	fire.New(f).Slots.EndOrphans(sending, time.Time{}, m.now())
	old := p.settle(m.now(), m.patience())
	p.Tidied = today
	removing, cancel := limited(ctx, removeLimit)
	defer cancel()
	err = errors.Join(cleaner{m}.prune(removing, old), f.Host.Sealing.Sweep(removing, f.Runs, m.now()), cleaner{m}.sweepRuns(removing), f.Slots.Fold(removing, m.now()))
	if removing.Err() != nil {
		p.Tidied, err = "", ctx.Err()
	}
	err = errors.Join(err, cleaner{m}.sweepObjects(ctx), cleaner{m}.sweepDrafts(), cleaner{m}.sweepLocks(), cleaner{m}.forgetApprovals(ctx), m.Sweep(ctx), m.Bill(ctx), f.Budget.Set(ctx, nil, nil))
	return p.Tidied == today, errors.Join(err, m.save(p))
}

// patience is how far the clock must have advanced from an instant before anything is removed as of that instant: a tenth of the time that
// records are kept, between a day and a week.
func (m Minute) patience() time.Duration {
	return time.Duration(min(max(m.Keep/10, 1), 7)) * 24 * time.Hour
}

// settle returns the time by which age is judged; the zero time at first, which makes nothing old. The clock alone does not show whether
// the machine was off for a year or the date is wrong. So an instant counts only once the first tick of a later day, at least patience
// after it, finds that the clock advanced from there. If the clock goes back before the instant, it never counts. So the first tick at a
// wrong date removes nothing, and data is removed up to twice patience later.
func (p *page) settle(now time.Time, patience time.Duration) time.Time {
	switch {
	case p.Pending.IsZero() || now.Before(p.Pending):
		p.Pending = now
	case now.Sub(p.Pending) >= patience:
		p.Settled, p.Pending = p.Pending, now
	}
	if p.Settled.After(now) {
		return now
	}
	return p.Settled
}

// cleaner removes what is kept long enough, and what nothing needs any more.
type cleaner struct{ m Minute }

// prune removes the records, late reminders, transcripts and slots that were too old at an instant; the zero time: none.
func (c cleaner) prune(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return nil
	}
	before := at.AddDate(0, 0, -c.m.Keep)
	return errors.Join(c.pruneRuns(ctx, at), c.pruneBacktests(ctx, before), c.pruneHistory(ctx, c.m.Retain.before(at, c.m.Retain.History)), c.pruneLate(before), c.pruneInbox(before), c.pruneTranscripts(ctx, at), c.m.Runner.Slots.Prune(ctx, before),
		c.pruneChanged(ctx, before), c.expireChannels(at))
}

// pruneChanged removes the values of `ollim changed` of jobs that are gone, if none was kept since an instant.
func (c cleaner) pruneChanged(ctx context.Context, before time.Time) error {
	present, err := c.present()
	if present == nil {
		return err
	}
	return c.m.Runner.Changes.Prune(ctx, before, func(id string) bool { return present[id] })
}

// expireChannels removes the sessions of channels that were not used for 30 days: as of now if recent ticks have shown that the clock is
// right, else as of at.
func (c cleaner) expireChannels(at time.Time) error {
	if now := c.m.now(); now.Sub(at) <= 2*c.m.patience() {
		at = now
	}
	_, err := c.m.Runner.Channels.Expire(at)
	return err
}

// pruneRuns removes the records of runs that were too old at an instant. Records of runs that did nothing are removed earlier; of the time
// between the two ages it reads only what the last call did not read.
func (c cleaner) pruneRuns(ctx context.Context, at time.Time) error {
	p, err := c.m.page()
	if err != nil {
		return err
	}
	before, idle := at.AddDate(0, 0, -c.m.Keep), at.AddDate(0, 0, -c.m.Keep)
	if c.m.Retain.Idle > 0 && c.m.Retain.Idle < c.m.Keep {
		idle = at.AddDate(0, 0, -c.m.Retain.Idle)
	}
	old, err := c.m.Runner.Runs.Between(time.Time{}, before)
	between, betweenErr := c.m.Runner.Runs.Between(latest(before, p.Idled.Add(-leftOver)), latest(before, idle))
	if err = errors.Join(err, betweenErr); err != nil {
		return err
	}
	for _, id := range slices.Concat(old, between) {
		if ctx.Err() != nil {
			return err
		}
		if c.isOver(id, before, idle) {
			err = errors.Join(err, c.removeRun(ctx, id))
		}
	}
	if err == nil {
		p.Idled = idle
	}
	return err
}

// isOver reports whether a run ended before before, or did nothing and ended before idle. A run without a record was killed before it wrote
// one.
func (c cleaner) isOver(id string, before, idle time.Time) bool {
	r, err := c.m.Runner.Runs.Load(id)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && runlog.Began(id).Before(before) && lock.Free(c.m.Runner.Home.RunLock(id))
	}
	return r.Done() && r.Outcome != runlog.Waiting && (r.Finished.Before(before) || didNothing(r) && r.Finished.Before(idle))
}

func (c cleaner) removeRun(ctx context.Context, id string) error {
	err := store.RemoveAll(ctx, c.m.Runner.Home.Run(id))
	c.m.Runner.Runs.Tidy(id)
	return err
}

// latest returns the later of two instants.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// pruneInbox removes the events of webhooks that are gone, if they arrived before an instant.
func (c cleaner) pruneInbox(before time.Time) error {
	present, err := c.present()
	if present == nil {
		return err
	}
	hooks, err := c.m.Runner.Inbox.Hooks()
	for _, hook := range hooks {
		if !present[hook] {
			err = errors.Join(err, c.m.Runner.Inbox.Prune(hook, before))
		}
	}
	return err
}

// pruneLate removes the reminders that were reported before an instant.
func (c cleaner) pruneLate(before time.Time) error {
	entries, err := store.List(c.m.Runner.Home.Late())
	for _, e := range entries {
		if info, infoErr := e.Info(); infoErr == nil && info.ModTime().Before(before) {
			err = errors.Join(err, os.Remove(filepath.Join(c.m.Runner.Home.Late(), e.Name())))
		}
	}
	return err
}

// leftOver is the age from which a file that nothing refers to counts as left by a process that died.
const leftOver = 24 * time.Hour

// isLeftOver reports whether the file at path was last changed longer ago than leftOver.
func (c cleaner) isLeftOver(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(c.m.now().Add(-leftOver))
}

// sweepRuns removes the directories of runs that have no record: their process was killed before it wrote one. Older directories than a
// week are removed with the records of their time.
func (c cleaner) sweepRuns(ctx context.Context) error {
	runs := c.m.Runner.Runs
	ids, err := runs.WithoutEnd(c.m.now().AddDate(0, 0, -7))
	for _, id := range ids {
		_, statErr := os.Lstat(c.m.Runner.Home.Run(id, "run.json"))
		if errors.Is(statErr, fs.ErrNotExist) && c.isLeftOver(c.m.Runner.Home.Run(id)) && lock.Free(c.m.Runner.Home.RunLock(id)) {
			err = errors.Join(err, c.removeRun(ctx, id))
		}
	}
	return err
}

// sweepLocks removes the lock files of jobs that are gone, and of their sessions. It removes none while a job file cannot be read, which
// may be that of such a job.
func (c cleaner) sweepLocks() error {
	entries, err := os.ReadDir(c.m.Runner.Home.Locks())
	if err != nil {
		return err
	}
	present, err := c.present()
	if present == nil {
		return err
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), lock.Ext)
		id, isJob := strings.CutPrefix(name, "job-")
		id, isSession := strings.CutPrefix(id, "session-routine-")
		if path := filepath.Join(c.m.Runner.Home.Locks(), e.Name()); isLock && isJob != isSession && !present[id] && c.isLeftOver(path) {
			err = errors.Join(err, remove(path))
		}
	}
	return err
}

// remove deletes a lock file, unless another process holds it.
func remove(path string) error {
	guard, err := lock.TryGuard(path)
	if errors.Is(err, lock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	return guard.Delete()
}

// present returns the ids of all jobs, and of the reminders that may be restored; nil while a file cannot be read.
func (c cleaner) present() (map[string]bool, error) {
	files, err := c.m.Runner.Jobs.Load()
	if err != nil || len(files.Faults) > 0 {
		return nil, err
	}
	late, err := c.m.Runner.Jobs.Late()
	present := map[string]bool{}
	for _, j := range slices.Concat(files.Jobs, late.Jobs) {
		present[j.ID] = true
	}
	return present, err
}

// sweepDrafts removes unfinished files of writers that were killed.
func (c cleaner) sweepDrafts() error {
	return filepath.WalkDir(string(c.m.Runner.Home), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a directory that has gone, or cannot be read, holds nothing to sweep
		}
		if e.IsDir() && path == c.m.Runner.Home.Runs() {
			return fs.SkipDir
		}
		if !store.IsDraft(e.Name()) || !e.Type().IsRegular() {
			return nil
		}
		if c.isLeftOver(path) {
			return os.Remove(path)
		}
		return nil
	})
}

// forgetApprovals drops the approvals of jobs that are gone; a key with a colon is that of a skill or of tool-policy.yaml. It drops none
// while a job file cannot be read, which may be that of such a job.
func (c cleaner) forgetApprovals(ctx context.Context) error {
	present, err := c.present()
	if present == nil {
		return err
	}
	return c.m.Runner.Approvals.Forget(ctx, func(key string, a approval.Approval) bool {
		return present[key] || strings.Contains(key, ":") || c.m.within(a.At, 24*time.Hour) // the job's file is written after its approval
	})
}
