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

	"github.com/ollim/ollim/internal/approval"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/store"
)

func byTime(jobs []job.Job) {
	slices.SortStableFunc(jobs, func(a, b job.Job) int { return a.RunAt.Compare(b.RunAt) })
}

// page is state/tick.json.
type page struct {
	Tidied  string               `json:"tidied"`            // the day
	Started map[string]time.Time `json:"started,omitempty"` // by job, what was started in the last minute

	Accounted time.Time            `json:"accounted"`      // up to here the ledger has every slot, but for
	Owed      map[string]time.Time `json:"owed,omitempty"` // by job, those that are still to run late
}

func (m Minute) pagePath() string { return m.Firer.Home.State("tick.json") }

func (m Minute) page() (page, error) { return store.ReadJSON[page](m.Firer.Disk, m.pagePath()) }

// noteStarts remembers what is about to be started: until that has taken its job's lock nothing else says so.
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
	return store.WriteJSONAs(m.pagePath(), p, store.Buffered)
}

// daily is what is done in the first minute of a day.
func (m Minute) daily(ctx, sending context.Context) error {
	f := m.Firer
	today := m.now().In(f.Zone).Format(time.DateOnly)
	p, err := m.page()
	if err != nil || p.Tidied == today {
		return err
	}
	f.EndOrphans(sending, time.Time{})
	err = errors.Join(m.prune(), m.pruneLate(), m.pruneTranscripts(), f.Slots.Prune(m.now().AddDate(0, 0, -m.Keep)), m.sweepDrafts(), f.Runs.SweepStops(), m.forgetApprovals(ctx), m.Sweep(ctx), f.Budget.Set(ctx, nil, nil))
	p.Tidied = today
	return errors.Join(err, store.WriteJSONAs(m.pagePath(), p, store.Buffered))
}

// prune removes the records of runs that ended too long ago.
func (m Minute) prune() error {
	before := m.now().AddDate(0, 0, -m.Keep)
	var err error
	for r, readErr := range m.Firer.Runs.List() {
		if readErr == nil && r.Done() && r.Finished.Before(before) {
			err = errors.Join(err, os.RemoveAll(m.Firer.Home.Run(r.ID)))
		}
	}
	return err
}

// pruneLate removes the reminders that were told of too long ago.
func (m Minute) pruneLate() error {
	entries, err := os.ReadDir(m.Firer.Home.Late())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if info, infoErr := e.Info(); infoErr == nil && info.ModTime().Before(m.now().AddDate(0, 0, -m.Keep)) {
			err = errors.Join(err, os.Remove(filepath.Join(m.Firer.Home.Late(), e.Name())))
		}
	}
	return err
}

// sweepDrafts removes what writers that were killed have left of files that they had not finished.
func (m Minute) sweepDrafts() error {
	before := m.now().Add(-24 * time.Hour)
	return filepath.WalkDir(string(m.Firer.Home), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a folder that has gone, or cannot be read, holds nothing to sweep
		}
		if e.IsDir() && path == m.Firer.Home.Runs() {
			return fs.SkipDir
		}
		if !store.IsDraft(e.Name()) || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			return os.Remove(path)
		}
		return nil
	})
}

// forgetApprovals drops those of jobs that are gone; a key with a colon is that of a skill or of tool-policy.yaml. While any file cannot be read nothing is dropped: it may be the one.
func (m Minute) forgetApprovals(ctx context.Context) error {
	shelf, err := m.Firer.Jobs.Load()
	if err != nil || len(shelf.Faults) > 0 {
		return err
	}
	present := map[string]bool{}
	for _, j := range shelf.Jobs {
		present[j.ID] = true
	}
	return m.Firer.Approvals.Forget(ctx, func(key string, a approval.Approval) bool {
		return present[key] || strings.Contains(key, ":") || m.within(a.At, 24*time.Hour) // its file is written after it
	})
}
