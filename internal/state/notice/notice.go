// Package notice remembers what has been reported to the owner, so that nothing is reported twice, and a problem that comes back
// is reported again. It decides whether to report; the caller reports, after the decision is on disk.
//
// On disk: state/notices.json, absent when it would be empty,
//
//	{
//	  "seen":     {"<key>": "2026-02-24T14:30:00Z"},  when a problem was first reported
//	  "failures": {"<job>": 4}                        how often a job has failed in a row
//	}
//
// changed under the lock "notices". A file that cannot be parsed is set aside, and everything is reported once more. The file was
// called told.json; one of that name is renamed.
package notice

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book holds the notices of one data directory. An error wraps *store.NotWritten or *lock.Failed, or lock.ErrBusy after
// ten seconds; the notices are unchanged then, and the caller decides whether to report.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

type page struct {
	Seen     map[string]time.Time `json:"seen,omitempty"`
	Failures map[string]int       `json:"failures,omitempty"`
}

// Refusal returns the key of the notice that a job may not run, one for each cause. Without a cause it is the prefix of
// all such keys of the job.
func Refusal(job, cause string) string { return "refused " + job + " " + cause }

// Heartbeat begins the key of the notice that the monitor of a caller, a job or tick, did not answer the last call; the caller and
// the day follow.
const Heartbeat = "heartbeat "

// Seen returns when each problem was first reported. A file that cannot be parsed has none; the next change sets it aside.
func (b Book) Seen() (map[string]time.Time, error) {
	p, _, err := store.PeekJSON[page](b.Home.Notices())
	return p.Seen, err
}

// Once reports whether key, for example one distinct error of a job file, is new, and records it.
func (b Book) Once(ctx context.Context, key string) (first bool, err error) {
	err = b.edit(ctx, func(p *page) bool {
		if _, seen := p.Seen[key]; seen {
			return false
		}
		if p.Seen == nil {
			p.Seen = map[string]time.Time{}
		}
		p.Seen[key] = b.Disk.Now().UTC()
		first = true
		return true
	})
	return first && err == nil, err
}

// Forget drops the keys that keep rejects, so that they are reported again when they recur. keep is called under the
// lock and must not use the book.
func (b Book) Forget(ctx context.Context, keep func(key string) bool) error {
	if b.empty() {
		return nil
	}
	return b.edit(ctx, func(p *page) bool {
		before := len(p.Seen)
		for key := range p.Seen {
			if !keep(key) {
				delete(p.Seen, key)
			}
		}
		return len(p.Seen) != before
	})
}

// Failed counts one more failure of a job in a row. report is true for the 1st, the 2nd, the 3rd (which is reported as
// "three in a row"), and then the 10th, 100th, 1000th and so on.
func (b Book) Failed(ctx context.Context, job string) (count int, report bool, err error) {
	err = b.edit(ctx, func(p *page) bool {
		if p.Failures == nil {
			p.Failures = map[string]int{}
		}
		p.Failures[job]++
		count = p.Failures[job]
		return true
	})
	if err != nil {
		return 0, false, err
	}
	return count, count <= 3 || powerOfTen(count), nil
}

// Worked resets a job's count of failures.
func (b Book) Worked(ctx context.Context, job string) error {
	if b.empty() {
		return nil
	}
	return b.edit(ctx, func(p *page) bool {
		_, failed := p.Failures[job]
		delete(p.Failures, job)
		return failed
	})
}

// empty reports whether there is nothing to remove. It needs no lock, and most fires and ticks find nothing.
func (b Book) empty() bool {
	for _, path := range []string{b.Home.Notices(), b.former()} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// edit changes the page under its lock and writes it only if change reports a change.
func (b Book) edit(ctx context.Context, change func(*page) bool) error {
	return b.Disk.Locked(ctx, b.Home.Lock("notices"), func() error {
		if err := b.renameFormer(); err != nil {
			return err
		}
		p, err := store.ReadJSON[page](b.Disk, b.Home.Notices())
		switch {
		case err != nil || !change(&p):
			return err
		case len(p.Seen) == 0 && len(p.Failures) == 0:
			return store.Remove(b.Home.Notices())
		}
		return store.WriteJSON(b.Home.Notices(), p, store.Synced)
	})
}

func powerOfTen(n int) bool {
	for n > 0 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}

func (b Book) former() string { return b.Home.State("told.json") }

// renameFormer renames told.json, the former file name, or removes it if the new file exists.
func (b Book) renameFormer() error {
	former := b.former()
	if _, err := os.Lstat(former); err != nil {
		return nil //nolint:nilerr // it does not exist
	}
	if _, err := os.Lstat(b.Home.Notices()); err == nil {
		return store.Remove(former)
	}
	if err := os.Rename(former, b.Home.Notices()); err != nil {
		return &store.NotWritten{Path: b.Home.Notices(), Err: err}
	}
	return nil
}
