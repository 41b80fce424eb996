// Package heartbeat makes calls to monitors, which report the absence of a call that they expect, and keeps those that are owed: a run
// that ended ok owes its job's URL a call.
//
// On disk: state/heartbeats.json, absent when no call is owed,
//
//	{"<job>": {"url": "https://hc-ping.com/…", "run": "<run id>", "at": "2026-02-24T14:30:00Z"}}
//
// changed under the lock "heartbeats". A call is noted before the record of its run is finished, so that a crash does not lose it,
// and removed when the monitor has answered. A later run of the job takes the place of an earlier one. A file that cannot be
// parsed is set aside.
package heartbeat

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book holds the calls of one data directory. An error wraps *store.NotWritten or *lock.Failed, or lock.ErrBusy after ten seconds.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

// Call is a call that is owed.
type Call struct {
	URL string    `json:"url"` // as it was approved when the run began
	Run string    `json:"run"`
	At  time.Time `json:"at"` // end of the run
}

// Owe notes that a run of a job owes a call.
func (b Book) Owe(ctx context.Context, job, run, url string) error {
	return b.edit(ctx, func(all map[string]Call) { all[job] = Call{url, run, b.Disk.Now().UTC()} })
}

// Done removes the calls that were made, by job. One that was replaced by that of a later run stays.
func (b Book) Done(ctx context.Context, made map[string]Call) error {
	return b.edit(ctx, func(all map[string]Call) {
		for job, c := range made {
			if all[job].Run == c.Run {
				delete(all, job)
			}
		}
	})
}

// List returns the calls that are owed, by job. It takes no lock, because the file is replaced as a whole. A file that cannot be
// parsed has none; the next change sets it aside.
func (b Book) List() (map[string]Call, error) {
	all, _, err := store.PeekJSON[map[string]Call](b.Home.Heartbeats())
	return all, err
}

// edit changes the file under its lock.
func (b Book) edit(ctx context.Context, change func(map[string]Call)) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("heartbeats"), b.Home.Heartbeats(), func(all *map[string]Call) error {
		if *all == nil {
			*all = map[string]Call{}
		}
		if change(*all); len(*all) == 0 {
			return store.ErrEmpty
		}
		return nil
	})
}
