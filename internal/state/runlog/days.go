package runlog

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// Between lists the ids of the runs that began between two instants, oldest first, including runs without a record. A zero time sets no
// limit. It reads only the directories of those days.
func (b Book) Between(from, to time.Time) (ids []string, err error) {
	for id, err := range b.newest() {
		if err != nil {
			return nil, err
		}
		if !to.IsZero() && id >= to.UTC().Format(idTime) {
			continue
		}
		if !from.IsZero() && id < from.UTC().Format(idTime) {
			break
		}
		ids = append(ids, id)
	}
	slices.Reverse(ids)
	return ids, nil
}

// After lists the ids of the runs that began at or after an instant, oldest first.
func (b Book) After(from time.Time) ([]string, error) { return b.Between(from, time.Time{}) }

// newest yields the ids of all runs, newest first. It reads the directory of a day only when it reaches that day.
func (b Book) newest() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for day, err := range b.days() {
			if err != nil {
				yield("", err)
				return
			}
			ids, err := names(day)
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range slices.Backward(ids) {
				if isID(id) && !yield(id, nil) {
					return
				}
			}
		}
	}
}

// days yields the directories of the days that have runs, newest first.
func (b Book) days() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		years, err := names(b.Home.Runs())
		if slices.ContainsFunc(years, isID) {
			years, err = b.moveInto(years)
		}
		if err != nil {
			yield("", err)
			return
		}
		for _, year := range slices.Backward(numbers(years, 4)) {
			if !b.months(filepath.Join(b.Home.Runs(), year), yield) {
				return
			}
		}
	}
}

// months yields the days of a year, newest first, and reports whether yield wants more.
func (b Book) months(year string, yield func(string, error) bool) bool {
	months, err := names(year)
	if err != nil {
		return yield("", err)
	}
	for _, month := range slices.Backward(numbers(months, 2)) {
		days, err := names(filepath.Join(year, month))
		if err != nil {
			return yield("", err)
		}
		for _, day := range slices.Backward(numbers(days, 2)) {
			if !yield(filepath.Join(year, month, day), nil) {
				return false
			}
		}
	}
	return true
}

// numbers returns the names that consist of exactly that many digits.
func numbers(names []string, digits int) []string {
	return slices.DeleteFunc(names, func(name string) bool { return len(name) != digits || strings.Trim(name, "0123456789") != "" })
}

// names lists a directory, sorted by name. A missing directory is empty.
func names(path string) ([]string, error) {
	folder, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0) // O_DIRECTORY fails on a named pipe instead of blocking
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	found, err := folder.Readdirnames(-1)
	slices.Sort(found)
	return found, err
}

// moveInto moves records that an earlier version kept directly in state/runs into the directories of their days. It returns the names
// that are left in state/runs.
func (b Book) moveInto(all []string) ([]string, error) {
	for _, id := range all {
		if !isID(id) {
			continue
		}
		if err := b.moveIn(id); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, lock.ErrBusy) {
			return nil, err
		}
	}
	return names(b.Home.Runs())
}

// moveIn moves one such record. It returns lock.ErrBusy for a run in progress, whose process still writes there, and fs.ErrNotExist if
// there is no such record or another process has moved it.
func (b Book) moveIn(id string) error {
	former, now := filepath.Join(b.Home.Runs(), id), b.Home.Run(id)
	if _, err := os.Lstat(former); err != nil {
		return err
	}
	if !lock.Free(filepath.Join(former, filepath.Base(b.Home.RunLock(id)))) {
		return lock.ErrBusy
	}
	if err := store.MkdirOwn(filepath.Dir(now)); err != nil {
		return err
	}
	if err := os.Rename(former, now); err != nil {
		return &store.NotWritten{Path: now, Err: err}
	}
	return nil
}

// Tidy removes the directories of a run's day, month and year if they are empty, and the sums of that day with its directory.
func (b Book) Tidy(id string) {
	day := filepath.Dir(b.Home.Run(id))
	defer func() {
		if _, err := os.Lstat(day); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(b.dayPath(b.dayOf(day)))
		}
	}()
	for path := filepath.Dir(b.Home.Run(id)); path != b.Home.Runs() && len(path) > len(b.Home.Runs()); path = filepath.Dir(path) {
		if os.Remove(path) != nil {
			return
		}
	}
}
