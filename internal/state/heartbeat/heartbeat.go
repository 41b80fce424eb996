// Package heartbeat calls monitors, which report the absence of a call that they expect, and stores the calls that are owed: a run that
// ended ok owes its job's URL a call.
//
// In the ledger: heartbeat.owed, which takes the place of the job's earlier one, and heartbeat.done. A call is noted before the record of
// its run is finished, so that a crash does not lose it, and done when the monitor has answered.
package heartbeat

import (
	"context"
	"maps"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// Book holds the calls of one data directory. For its errors see ledger.Ledger.Change.
type Book struct{ Ledger *ledger.Ledger }

// Call is a call that is owed.
type Call struct {
	URL string    `json:"url"` // as it was approved when the run began
	Run string    `json:"run"`
	At  time.Time `json:"at"` // end of the run
}

type owed struct {
	Job string `json:"job"`
	Run string `json:"run"`
	URL string `json:"url"`
}

func (owed) Fact() string { return "heartbeat.owed" }

type done struct {
	Job string `json:"job"`
	Run string `json:"run"`
}

func (done) Fact() string { return "heartbeat.done" }

// Calls are the calls that are owed, by job.
type Calls map[string]Call

// Facts returns the book of the calls that are owed.
func Facts() *ledger.Book[Calls] {
	return ledger.NewBook("heartbeat",
		ledger.On("heartbeat.owed", func(all *Calls, at time.Time, f owed) {
			if *all == nil {
				*all = Calls{}
			}
			(*all)[f.Job] = Call{f.URL, f.Run, at}
		}),
		ledger.On("heartbeat.done", func(all *Calls, _ time.Time, f done) {
			if (*all)[f.Job].Run == f.Run {
				delete(*all, f.Job)
			}
		}),
	)
}

// Owe notes that a run of a job owes a call.
func Owe(tx *ledger.Tx, job, run, url string) error { return tx.Add(owed{job, run, url}) }

// Owe is the function Owe as a change of its own.
func (b Book) Owe(ctx context.Context, job, run, url string) error {
	return b.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error { return Owe(tx, job, run, url) })
}

// Done removes the calls that were made, by job. A call that was replaced by that of a later run stays.
func (b Book) Done(ctx context.Context, made Calls) error {
	return b.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error {
		for job, c := range made {
			if err := tx.Add(done{job, c.Run}); err != nil {
				return err
			}
		}
		return nil
	})
}

// List returns the calls that are owed, by job.
func (b Book) List() (all Calls, err error) {
	err = b.Ledger.Read(func(v ledger.View) error {
		calls, err := ledger.Of(v, Facts())
		if err == nil {
			all = maps.Clone(*calls)
		}
		return err
	})
	return all, err
}

// Former is the name of the file of earlier versions in state/: the calls that are owed, by job.
const Former = "heartbeats.json"

// Import adds the facts of the file of an earlier version.
func Import(tx *ledger.Tx, path string) error {
	all, _, err := store.PeekJSON[Calls](path)
	for job, c := range all {
		if err == nil {
			err = tx.AddAt(c.At, owed{job, c.Run, c.URL})
		}
	}
	return err
}
