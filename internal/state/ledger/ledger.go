// Package ledger is the log of facts of a data directory: what several processes must know, one line for each fact, appended under one
// lock. The facts of one Change happen together or not at all. State is computed from the facts: a Book says what each kind of fact does to
// it.
//
// On disk, a file for each day in UTC, state/ledger/2026-11-23.jsonl, of lines such as
//
//	{"at":"2026-11-23T19:55:00.123456Z","fact":"update.added","message":"…","more":1,"hash":"0123456789abcdef"}
//
// "more" is the number of lines of the same Change that follow; it is absent from the last one. Lines at the end of the newest file whose
// Change is incomplete were never acknowledged: readers ignore them and the next writer removes them. "hash" is the first 16 hex digits of
// the SHA-256 of the hash of the line before and of the line up to its own hash, so that Verify finds a line that was changed or removed.
//
// state/checkpoint.json is the state up to a position. It is a cache: if it is missing, damaged or of another history, it is made again.
// state/ledger/base.json is the state from the days that Trim has removed; it is not a cache. state/ledger/head.json is the position after
// the last fact that was synced: Verify finds by it that the last facts were removed, and so does the next change, which notes it.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Fact is the content of a line: a struct whose JSON is an object without the keys at, fact, more and hash.
type Fact interface {
	// Fact returns the kind, such as update.added: letters, a dot, letters.
	Fact() string
}

// Ledger is the log of one data directory. It is safe for concurrent use. A checkpoint holds only the books of the process that writes it.
type Ledger struct {
	Imports []Import

	home  paths.Dir
	disk  store.Disk
	books []Reducer

	mu    sync.Mutex
	view  *view    // what has been read; nil: nothing yet
	dirty position // after the facts that this Ledger has appended and not synced; zero: none
}

// New returns the ledger of a data directory. It reads nothing.
func New(home paths.Dir, disk store.Disk, books ...Reducer) *Ledger {
	return &Ledger{home: home, disk: disk, books: append(books, imports())}
}

// View is the state at one moment. It is valid until the function that it was given to returns.
type View struct{ v *view }

// Tx is a change of the ledger: the state before it, with the facts added so far.
type Tx struct {
	View

	At    time.Time // of all its facts, UTC, to the microsecond
	d     store.Durability
	facts []Line // without what encode adds
	after []func(error)
}

// Read calls do with the state as it is now. It takes no lock and writes nothing, unless a store is to be imported. do must not use the ledger.
func (l *Ledger) Read(do func(View) error) error {
	done, err := l.readNow(do, false)
	if done || err != nil {
		return err
	}
	imported, err := l.begin()
	switch {
	case err != nil:
		return err
	case imported != nil:
		return do(imported.View)
	}
	_, err = l.readNow(do, true)
	return err
}

// readNow calls do with the state as it is now and reports whether it did. It does not if stores are still to be imported, unless imported
// is set.
func (l *Ledger) readNow(do func(View) error, imported bool) (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return false, err
	}
	owed, err := l.owed(View{l.view})
	if err != nil || len(owed) > 0 && !imported {
		return false, err
	}
	return true, do(View{l.view})
}

// Change calls do with the state under the lock of the ledger and appends the facts that it added, all or none. If do returns an error,
// nothing is appended. An error wraps *store.NotWritten or *lock.Failed, or lock.ErrBusy after ten seconds. do must not use the ledger.
func (l *Ledger) Change(ctx context.Context, d store.Durability, do func(*Tx) error) error {
	held, err := l.disk.Lock(ctx, l.home.LedgerLock())
	if err != nil {
		return err
	}
	defer held.Release()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return err
	}
	tx := &Tx{View: View{l.view}, At: l.disk.Now().UTC().Truncate(time.Microsecond), d: d}
	taken, err := l.takeOver(tx)
	imported := len(tx.facts)
	if err == nil {
		err = do(tx)
	}
	written := err == nil && (len(tx.facts) > imported || imported > 1)
	if written {
		if imported > 1 {
			tx.d = store.Synced
		}
		err = l.append(tx, tx.d)
	}
	for _, do := range tx.after {
		do(err)
	}
	if err == nil && written {
		l.putAway(taken)
	} else if len(tx.facts) > 0 {
		l.view = nil // the view has facts that were not written
	}
	return err
}

// After registers do, to be called at the end of the change, still under the lock of the ledger: with nil once the facts are written, else
// with the error of the change. A store that keeps a view of its state in a file writes it there.
func (t *Tx) After(do func(err error)) { t.after = append(t.after, do) }

// Needs makes the change at least as durable as d.
func (t *Tx) Needs(d store.Durability) { t.d = max(t.d, d) }

// Add adds facts to the change. The View then includes them.
func (t *Tx) Add(facts ...Fact) error { return t.AddAt(t.At, facts...) }

// AddAt is Add for facts of an earlier time.
func (t *Tx) AddAt(at time.Time, facts ...Fact) error {
	for _, f := range facts {
		text, err := body(f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Fact(), err)
		}
		line := Line{At: at.UTC().Truncate(time.Microsecond), Kind: f.Fact(), JSON: text}
		t.facts = append(t.facts, line)
		t.v.add(line)
	}
	return nil
}

// append writes the facts of a change to the newest file. The caller holds the lock, and the view is that of the whole ledger.
func (l *Ledger) append(tx *Tx, d store.Durability) error {
	v := l.view
	from := v.at
	if day := tx.At.Format(time.DateOnly); day > from.Day {
		from.Day, from.Offset = day, 0
	}
	facts, h := tx.facts, head{unreadable: true}
	if d == store.Synced || v.at.Day == "" {
		var gap *lost
		var err error
		if h, gap, err = l.checkHead(from.Day); err != nil {
			return err
		}
		defer h.close()
		if gap != nil {
			text, _ := body(*gap) // a string and a number
			facts, d = slices.Insert(facts, 0, Line{At: tx.At, Kind: gap.Fact(), JSON: text}), store.Synced
		}
	}
	text, end := encode(facts, from)
	if err := l.write(from, text, d); err != nil {
		return err
	}
	v.at, l.dirty = end, end
	if d == store.Synced {
		l.writeHead(h, end)
		l.dirty = position{}
	}
	if end.Day != v.mark.Day || end.Offset-v.mark.Offset > max(tailSize, v.size) {
		l.save()
	}
	return nil
}

// beginDay syncs the name of a new file, and the file before it: a change that is synced later syncs only the file that it is in, and the
// facts before it must be on disk too.
func (l *Ledger) beginDay(path string) error {
	if before := l.path(l.view.at.Day); before != path {
		if err := syncFile(before); err != nil && !errors.Is(err, fs.ErrNotExist) { // Trim has removed it, or there was none
			return err
		}
	}
	return store.SyncDir(path)
}

// write appends text at a position, the end of the last whole change. It removes the part of a change that a killed process left there.
func (l *Ledger) write(at position, text []byte, d store.Durability) (err error) {
	path := l.path(at.Day)
	defer func() {
		if err != nil {
			err = &store.NotWritten{Path: path, Err: err}
		}
	}()
	if at.Offset == 0 {
		if err := store.MkdirOwn(l.folder()); err != nil {
			return err
		}
	}
	f, err := store.Open(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if v := l.view; v.torn {
		if err := f.Truncate(at.Offset); err != nil {
			return err
		}
	}
	_, err = f.Write(text)
	if err == nil && d == store.Synced {
		err = f.Sync()
	}
	if err == nil && at.Offset == 0 {
		err = l.beginDay(path)
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(at.Offset))
	}
	return err
}

// Sync waits until every fact that this Ledger has appended is on disk. It does nothing if they are. The error wraps *store.NotWritten.
func (l *Ledger) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirty == (position{}) {
		return nil
	}
	path := l.path(l.dirty.Day)
	if err := syncFile(path); err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	l.raiseHead(l.dirty)
	l.dirty = position{}
	return nil
}

func syncFile(path string) error {
	f, err := store.Open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
