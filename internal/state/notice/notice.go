// Package notice remembers what the owner was already told, so that nothing is said twice and everything that comes back is
// said again. It decides whether to speak; saying it is up to the caller, which does so only after the memory is on disk.
//
// On disk: state/told.json, absent when there is nothing to remember,
//
//	{
//	  "seen":     {"<key>": "2026-02-24T14:30:00Z"},  when a thing was told first
//	  "failures": {"<job>": 4}                        how often a job has failed in a row
//	}
//
// changed under the lock "told". A file that cannot be parsed is set aside and everything is told once more.
package notice

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book is the memory of one data directory. An error wraps *store.NotWritten or *lock.Failed, or lock.ErrBusy after ten
// seconds; nothing has been remembered then, and whether to speak all the same is up to the caller.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

// page is told.json.
type page struct {
	Seen     map[string]time.Time `json:"seen,omitempty"`
	Failures map[string]int       `json:"failures,omitempty"`
}

// Refusal is the key under which it is told that a job may not run, once for each cause. With no cause it is the beginning of
// all of the job's.
func Refusal(job, cause string) string { return "refused " + job + " " + cause }

// Once says whether key, for example one distinct error of a job file, is new, and remembers it.
func (b Book) Once(ctx context.Context, key string) (first bool, err error) {
	err = b.edit(ctx, func(p *page) bool {
		if _, told := p.Seen[key]; told {
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

// Forget drops the keys that are no longer true, so that they are told again when they recur. keep is called under the lock
// and must not use the book.
func (b Book) Forget(ctx context.Context, keep func(key string) bool) error {
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

// Failed counts one more failure of a job in a row. speak is true for the 1st, the 2nd, the 3rd (which is to be told as
// "three in a row"), and then the 10th, 100th, 1000th and so on.
func (b Book) Failed(ctx context.Context, job string) (count int, speak bool, err error) {
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

// Worked ends a job's row of failures.
func (b Book) Worked(ctx context.Context, job string) error {
	return b.edit(ctx, func(p *page) bool {
		_, failed := p.Failures[job]
		delete(p.Failures, job)
		return failed
	})
}

// edit changes the page under its lock and writes it only if change says that it did.
func (b Book) edit(ctx context.Context, change func(*page) bool) error {
	held, err := b.Disk.Lock(ctx, b.Home.Lock("told"))
	if err != nil {
		return err
	}
	defer held.Release()
	p, err := store.ReadJSON[page](b.Disk, b.Home.Told())
	if err != nil || !change(&p) {
		return err
	}
	if len(p.Seen) == 0 && len(p.Failures) == 0 {
		return store.Remove(b.Home.Told())
	}
	return store.WriteJSON(b.Home.Told(), p)
}

func powerOfTen(n int) bool {
	for n > 0 && n%10 == 0 {
		n /= 10
	}
	return n == 1
}
