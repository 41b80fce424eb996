package ledger

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Import takes over the files of a store that an earlier version wrote, once for each data directory, in the first change.
type Import struct {
	Store  string             // its name in the fact that notes the import
	Former []string           // patterns of the files, in state/: they are moved to state/former afterwards
	Add    func(tx *Tx) error // adds their facts, and changes nothing else. It is called again after a crash
}

// imported notes that stores need no import any more.
type imported struct {
	Stores []string `json:"stores"`
}

func (imported) Fact() string { return "ledger.imported" }

// importedStores is the state of the book of imports.
type importedStores struct {
	Stores []string `json:"stores"`
}

func imports() *Book[importedStores] {
	return NewBook("imports", On("ledger.imported", func(s *importedStores, _ time.Time, f imported) { s.Stores = append(s.Stores, f.Stores...) }))
}

// takeOver adds the facts of the stores that were not imported yet, and a fact that they are imported now; if there is no such store, it
// adds nothing.
func (l *Ledger) takeOver(tx *Tx) (taken []Import, err error) {
	taken, err = l.owed(tx.View)
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	var names []string
	for _, i := range taken {
		names = append(names, i.Store)
		if err := i.Add(tx); err != nil {
			return nil, err
		}
	}
	return taken, tx.Add(imported{names})
}

// owed returns the imports that were not done.
func (l *Ledger) owed(v View) ([]Import, error) {
	done, err := Of(v, imports())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(l.Imports), func(i Import) bool { return slices.Contains(done.Stores, i.Store) }), nil
}

// isOwed reports whether an import was not done.
func (l *Ledger) isOwed() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		return false, err
	}
	owed, err := l.owed(View{l.view})
	return len(owed) > 0, err
}

// begin imports the stores that were not imported yet and have something to import. If that cannot be written, as on a read-only file
// system, it returns the change that would import them; else nil.
func (l *Ledger) begin() (*Tx, error) {
	if owed, err := l.isOwed(); !owed || err != nil {
		return nil, err
	}
	v, err := l.fresh()
	if err != nil {
		return nil, err
	}
	tx := &Tx{View: View{v}, At: l.disk.Now().UTC()}
	if _, err := l.takeOver(tx); err != nil || len(tx.facts) < 2 {
		return nil, err
	}
	if l.Change(context.Background(), store.Synced, func(*Tx) error { return nil }) == nil {
		return nil, nil
	}
	return tx, nil
}

// putAway moves the files that were taken over to state/former. The next Trim moves the files that a crash leaves; nothing reads them any
// more.
func (l *Ledger) putAway(taken []Import) {
	for _, i := range taken {
		for _, pattern := range i.Former {
			names, _ := fs.Glob(os.DirFS(l.home.State()), pattern)
			for _, name := range names {
				to := l.home.State("former", name)
				if store.MkdirOwn(filepath.Dir(to)) == nil {
					_ = os.Rename(l.home.State(name), to)
				}
			}
		}
	}
}
