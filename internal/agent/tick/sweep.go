package tick

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
)

// leftOver is the age from which a file that nothing refers to counts as left by a process that died.
const leftOver = 24 * time.Hour

// isLeftOver reports whether the file at path has been as it is for so long.
func (m Minute) isLeftOver(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(m.now().Add(-leftOver))
}

// sweepRuns removes the directories of runs that have no record: their process was killed before it wrote one.
func (m Minute) sweepRuns() error {
	runs := m.Runner.Runs
	ids, err := runs.Before(m.now())
	for _, id := range ids {
		_, statErr := os.Lstat(m.Runner.Home.Run(id, "run.json"))
		if errors.Is(statErr, fs.ErrNotExist) && m.isLeftOver(m.Runner.Home.Run(id)) && lock.Free(m.Runner.Home.RunLock(id)) {
			err = errors.Join(err, os.RemoveAll(m.Runner.Home.Run(id)))
		}
	}
	return err
}

// sweepLocks removes the lock files of jobs that are gone, and of their sessions. While any job file cannot be read none is removed:
// it may be the one.
func (m Minute) sweepLocks() error {
	entries, err := os.ReadDir(m.Runner.Home.Locks())
	if err != nil {
		return err
	}
	present, err := m.present()
	if present == nil {
		return err
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), lock.Ext)
		id, isJob := strings.CutPrefix(name, "job-")
		id, isSession := strings.CutPrefix(id, "session-routine-")
		if path := filepath.Join(m.Runner.Home.Locks(), e.Name()); isLock && isJob != isSession && !present[id] && m.isLeftOver(path) {
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

// present is the set of ids of all jobs; nil while a file cannot be read.
func (m Minute) present() (map[string]bool, error) {
	files, err := m.Runner.Jobs.Load()
	if err != nil || len(files.Faults) > 0 {
		return nil, err
	}
	present := map[string]bool{}
	for _, j := range files.Jobs {
		present[j.ID] = true
	}
	return present, nil
}

// sweepDrafts removes what writers that were killed have left of files that they had not finished.
func (m Minute) sweepDrafts() error {
	return filepath.WalkDir(string(m.Runner.Home), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a directory that has gone, or cannot be read, holds nothing to sweep
		}
		if e.IsDir() && path == m.Runner.Home.Runs() {
			return fs.SkipDir
		}
		if !store.IsDraft(e.Name()) || !e.Type().IsRegular() {
			return nil
		}
		if m.isLeftOver(path) {
			return os.Remove(path)
		}
		return nil
	})
}

// forgetApprovals drops the approvals of jobs that are gone; a key with a colon is that of a skill or of tool-policy.yaml. While any
// file cannot be read nothing is dropped: it may be the one.
func (m Minute) forgetApprovals(ctx context.Context) error {
	present, err := m.present()
	if present == nil {
		return err
	}
	return m.Runner.Approvals.Forget(ctx, func(key string, a approval.Approval) bool {
		return present[key] || strings.Contains(key, ":") || m.within(a.At, 24*time.Hour) // its file is written after it
	})
}
