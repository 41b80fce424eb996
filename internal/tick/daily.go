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

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/store"
)

func byTime(jobs []job.Job) {
	slices.SortStableFunc(jobs, func(a, b job.Job) int { return a.RunAt.Compare(b.RunAt) })
}

// page is state/tick.json.
type page struct {
	Tidied string `json:"tidied"` // the day
}

// daily is what is done in the first minute of a day.
func (m Minute) daily(ctx context.Context) error {
	f := m.Firer
	path := f.Home.State("tick.json")
	today := m.now().In(f.Zone).Format(time.DateOnly)
	p, err := store.ReadJSON[page](f.Disk, path)
	if err != nil || p.Tidied == today {
		return err
	}
	f.EndOrphans(ctx, time.Time{})
	err = errors.Join(m.prune(), m.sweepDrafts(), m.forgetApprovals(ctx), m.Sweep(ctx), f.Budget.Set(ctx, nil, nil))
	return errors.Join(err, store.WriteJSON(path, page{today}))
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

// forgetApprovals drops those of jobs that are gone. While any file cannot be read nothing is dropped: it may be the one.
func (m Minute) forgetApprovals(ctx context.Context) error {
	shelf, err := m.Firer.Jobs.Load()
	if err != nil || len(shelf.Faults) > 0 {
		return err
	}
	present := map[string]bool{}
	for _, j := range shelf.Jobs {
		present[j.ID] = true
	}
	return m.Firer.Approvals.Forget(ctx, func(key string) bool { return present[key] || strings.HasPrefix(key, "skill:") })
}
