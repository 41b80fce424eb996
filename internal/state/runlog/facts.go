package runlog

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// fact is a record as it was when something happened to its run. The fact is on disk before anyone relies on it, and run.json, which then
// need not be, is written again from it by Restore.
type fact struct {
	kind string
	Record
}

func (f fact) Fact() string { return f.kind }

// The kinds of a fact.
const (
	began   = "run.began" // only of a run that must not happen twice: that of a slot, or one that continues with an answer
	ended   = "run.ended"
	removed = "run.removed" // it did not take place
)

// of returns the fact of a kind about the run as it is now, without its final text: facts are kept longer than runs, and the text goes with the
// run. Its events have it too.
func (r *Run) of(kind string) ledger.Fact {
	f := fact{kind, r.Record}
	f.Text = ""
	return f
}

// note adds a fact about the run to the ledger and waits for the disk.
func (r *Run) note(ctx context.Context, kind string) error {
	return r.book.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error { return tx.Add(r.of(kind)) })
}

// once reports whether the run must not happen twice.
func (r *Run) once() bool { return r.Scheduled != nil || r.Continued > 0 }

// Began returns what the ledger must know, on disk, before a run that must not happen twice does anything. Other runs have no such fact.
func (r *Run) Began() []ledger.Fact {
	if !r.once() {
		return nil
	}
	return []ledger.Fact{r.of(began)}
}

// Begin adds the facts of Began to the ledger.
func (r *Run) Begin(ctx context.Context) error {
	if !r.once() {
		return nil
	}
	return r.note(ctx, began)
}

// window is the time before the last fact of a run whose facts Restore reads: longer than the system keeps a written file from the disk.
const window = 24 * time.Hour

// Restore writes the records that a power failure has undone, as the last fact about each run says. It returns what these facts say of the
// runs that began or ended at last, the oldest first. It changes no record that is on disk, and may be repeated.
func (b Book) Restore() (list []Record, err error) {
	last := time.Time{}
	for line, err := range b.Ledger.Newest(last, began, ended) {
		if err != nil {
			return nil, err
		}
		last = line.At
		break
	}
	latest := map[string]Record{}
	var ids []string
	for line, err := range b.Ledger.Lines(last.Add(-window), began, ended, removed) {
		f := fact{kind: line.Kind}
		if err != nil {
			return nil, err
		}
		if line.Into(&f) != nil || !isID(f.ID) {
			continue
		}
		if _, known := latest[f.ID]; !known {
			ids = append(ids, f.ID)
		}
		if latest[f.ID] = f.Record; f.kind == removed {
			delete(latest, f.ID)
		}
	}
	for _, id := range ids {
		if r, known := latest[id]; known {
			list = append(list, r)
			err = errors.Join(err, b.restore(r))
		}
	}
	return list, err
}

// restore writes a record unless the one on disk says as much.
func (b Book) restore(r Record) error {
	now, err := b.Load(r.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, new(*Damaged)):
		err = store.MkdirOwn(b.Home.Run(r.ID))
	case err == nil && !r.isLater(now):
		return nil
	}
	if err != nil {
		return err
	}
	run := b.run(r)
	_ = run.eachText(func(e Event) { // events that cannot be read leave the record without its text
		if e.Type == Result {
			run.say(e)
		}
	})
	return run.save(store.Synced)
}

// isLater reports whether the run had gone on since another form of its record.
func (r Record) isLater(than Record) bool {
	if r.Continued != than.Continued || !r.Done() {
		return r.Continued > than.Continued
	}
	return !than.Done() || r.Finished.After(*than.Finished)
}

// OfSlot returns the run of a job's slot as its last fact says, the zero Record if the ledger has none. It reads the ledger since the slot.
func (b Book) OfSlot(kind, job string, at time.Time) (Record, error) {
	undone := map[string]bool{}
	for line, err := range b.Ledger.Newest(at, began, ended, removed) {
		f := fact{kind: line.Kind}
		switch {
		case err != nil:
			return Record{}, err
		case line.Into(&f) != nil || f.Kind != kind || f.Job != job || f.Scheduled == nil || !f.Scheduled.Equal(at):
		case f.kind == removed:
			undone[f.ID] = true
		case !undone[f.ID]:
			return f.Record, nil
		}
	}
	return Record{}, nil
}
