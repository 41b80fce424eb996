package ledger

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/platform/store"
)

// begin takes the files of an earlier version over, if there is no ledger yet. Where that cannot be written, as on a file system that is
// read-only, it returns the view of their facts; else nil.
func (l *Ledger) begin() (*view, error) {
	if !l.missing() {
		return nil, nil
	}
	tx := &Tx{View: View{&view{l: l, states: map[string]*state{}, at: position{Hash: first}}}, At: l.disk.Now().UTC()}
	if err := l.Import(tx); err != nil || len(tx.facts) == 0 {
		return nil, err
	}
	if l.Change(context.Background(), store.Synced, func(*Tx) error { return nil }) == nil {
		return nil, nil
	}
	return tx.v, nil
}

// missing reports whether there is no ledger and something that may be taken over.
func (l *Ledger) missing() bool {
	if l.Import == nil {
		return false
	}
	_, err := os.Lstat(l.folder())
	return os.IsNotExist(err)
}

// takeOver writes the facts of Import to a directory beside that of the ledger, and renames it. A crash before that leaves no ledger, and the
// next process begins again. The caller holds the lock.
func (l *Ledger) takeOver() error {
	if !l.missing() {
		return nil
	}
	draft := New(l.home, l.disk, l.books...)
	draft.name = folderName + ".new"
	if err := os.RemoveAll(draft.folder()); err != nil {
		return &store.NotWritten{Path: draft.folder(), Err: err}
	}
	if err := draft.change(store.Synced, l.Import); err != nil || draft.view.at.Day == "" {
		return err
	}
	if err := store.Rename(draft.folder(), l.folder()); err != nil {
		return err
	}
	l.view = nil
	l.putAway()
	return nil
}

// putAway moves the files that were taken over to state/former. What a crash leaves is moved by the next Trim; nobody reads it any more.
func (l *Ledger) putAway() {
	for _, pattern := range l.Former {
		names, _ := fs.Glob(os.DirFS(l.home.State()), pattern)
		for _, name := range names {
			to := l.home.State("former", name)
			if store.MkdirOwn(filepath.Dir(to)) == nil {
				_ = os.Rename(l.home.State(name), to)
			}
		}
	}
}
