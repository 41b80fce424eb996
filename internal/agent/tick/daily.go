package tick

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// page is state/tick.json.
type page struct {
	Tidied  string               `json:"tidied"`            // the day
	Settled time.Time            `json:"settled,omitzero"`  // the time by which the age of what is kept is judged, see settle
	Pending time.Time            `json:"pending,omitzero"`  // becomes Settled when the clock has gone on from there
	Started map[string]time.Time `json:"started,omitempty"` // by job, what was started in the last minute

	Accounted time.Time            `json:"accounted"`      // up to here every slot is recorded, except for
	Owed      map[string]time.Time `json:"owed,omitempty"` // by job, the slots that are still to run late
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

// noteStarts remembers the jobs that are about to be started. Until a fire has taken its job's lock nothing else shows it.
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

// daily is what is done in the first minute of a day.
func (m Minute) daily(ctx, sending context.Context) error {
	f := m.Runner
	today := m.now().In(f.Zone).Format(time.DateOnly)
	p, err := m.page()
	if err != nil || p.Tidied == today {
		return err
	}
	f.EndOrphans(sending, time.Time{})
	old := p.settle(m.now(), m.patience())
	p.Tidied = today
	err = errors.Join(m.prune(ctx, old), m.sweepObjects(ctx), m.sweepDrafts(), m.Runner.SweepPrivate(), m.sweepRuns(), m.sweepLocks(), f.Runs.SweepStops(), m.forgetApprovals(ctx), m.Sweep(ctx), f.Budget.Set(ctx, nil, nil))
	return errors.Join(err, m.save(p))
}

// patience is how long the clock must have gone on from an instant before anything is removed as of that instant: a tenth of the
// time that records are kept, between a day and a week.
func (m Minute) patience() time.Duration {
	return time.Duration(min(max(m.Keep/10, 1), 7)) * 24 * time.Hour
}

// settle returns the time by which age is judged; the zero time at first, which makes nothing old. A clock alone cannot tell a year
// in which the machine was off from a wrong date. So an instant counts only once a later day's first tick, at least so much after
// it, has found that the clock went on from there; one that the clock went back from never counts. The first tick at a wrong
// date removes nothing, and what is kept goes later by up to twice that time.
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

// prune removes the records, late reminders, transcripts and slots that were too old at an instant; the zero time: none.
func (m Minute) prune(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return nil
	}
	before := at.AddDate(0, 0, -m.Keep)
	return errors.Join(m.pruneRuns(before), m.pruneLate(before), m.pruneInbox(before), m.pruneTranscripts(ctx, at.Add(-session.ReplyLimit)), m.Runner.Slots.Prune(before),
		m.expireChannels(at))
}

// expireChannels removes the sessions of channels that were not used for 30 days, to the day if ticks have shown the clock to be right
// of late, and else as of that instant.
func (m Minute) expireChannels(at time.Time) error {
	if now := m.now(); now.Sub(at) <= 2*m.patience() {
		at = now
	}
	_, err := m.Runner.Channels.Expire(at.Add(-channel.Life))
	return err
}

// pruneRuns removes the records of runs that ended before an instant.
func (m Minute) pruneRuns(before time.Time) error {
	runs := m.Runner.Runs
	ids, err := runs.Before(before)
	for _, id := range ids {
		if r, readErr := runs.Load(id); readErr == nil && r.Done() && r.Outcome != runlog.Waiting && r.Finished.Before(before) {
			err = errors.Join(err, os.RemoveAll(m.Runner.Home.Run(id)))
		}
	}
	return err
}

// pruneInbox removes the events of webhooks that are gone, if they arrived before an instant.
func (m Minute) pruneInbox(before time.Time) error {
	present, err := m.present()
	if present == nil {
		return err
	}
	hooks, err := m.Runner.Inbox.Hooks()
	for _, hook := range hooks {
		if !present[hook] {
			err = errors.Join(err, m.Runner.Inbox.Prune(hook, before))
		}
	}
	return err
}

// pruneLate removes the reminders that were reported before an instant.
func (m Minute) pruneLate(before time.Time) error {
	entries, err := os.ReadDir(m.Runner.Home.Late())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if info, infoErr := e.Info(); infoErr == nil && info.ModTime().Before(before) {
			err = errors.Join(err, os.Remove(filepath.Join(m.Runner.Home.Late(), e.Name())))
		}
	}
	return err
}
