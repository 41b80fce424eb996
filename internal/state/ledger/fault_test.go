package ledger

import (
	"errors"
	"iter"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// TestFaults: what cannot be read or written is an error of each call that needs it, and of no other.
func TestFaults(t *testing.T) {
	t.Parallel()
	last := func(lines iter.Seq2[Line, error]) (last error) {
		for _, err := range lines {
			last = err
		}
		return last
	}
	calls := map[string]func(l *Ledger) error{
		"Read": func(l *Ledger) error {
			return l.Read(func(v View) error {
				_, err := Of(v, testBook("values"))
				return err
			})
		},
		"Change": func(l *Ledger) error {
			return l.Change(t.Context(), store.Buffered, func(tx *Tx) error { return tx.Add(put{"b", 2}) })
		},
		"Lines":  func(l *Ledger) error { return last(l.Lines(time.Time{})) },
		"Newest": func(l *Ledger) error { return last(l.Newest(time.Time{})) },
		"Verify": func(l *Ledger) error {
			_, _, err := l.Verify()
			return err
		},
		"Trim": func(l *Ledger) error { return l.Trim(t.Context(), l.disk.Now()) },
	}
	const oldest, newest = "2026-11-23", "2026-11-24"
	instead := func(path string, make func(string) error) error { return errors.Join(os.RemoveAll(path), make(path)) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	file := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	for name, c := range map[string]struct {
		fault func(l *Ledger) error
		fail  []string
	}{
		"none": {func(*Ledger) error { return nil }, nil},
		"the folder is a file": {
			func(l *Ledger) error { return instead(l.folder(), file("")) }, []string{"Change", "Lines", "Newest", "Read", "Sync", "Trim", "Verify"},
		},
		"the newest day is a folder": {
			func(l *Ledger) error { return instead(l.path(newest), folder) }, []string{"Change", "Lines", "Newest", "Read", "Sync", "Trim", "Verify"},
		},
		"the oldest day is a folder": {
			func(l *Ledger) error { return instead(l.path(oldest), folder) }, []string{"Lines", "Newest", "Trim", "Verify"},
		},
		"the lock is a folder": {
			func(l *Ledger) error { return instead(l.home.Lock("ledger"), folder) }, []string{"Change", "Trim"},
		},
		"the checkpoint is a folder": {func(l *Ledger) error { return instead(l.checkpointPath(), folder) }, nil},
		"the base is a folder":       {func(l *Ledger) error { return folder(l.basePath()) }, []string{"Trim", "Verify"}},
		"the base is a folder, and there is no checkpoint": {func(l *Ledger) error {
			return errors.Join(os.Remove(l.checkpointPath()), folder(l.basePath()))
		}, []string{"Change", "Lines", "Newest", "Read", "Trim", "Verify"}},
		"the base is no JSON": {func(l *Ledger) error {
			return errors.Join(os.Remove(l.checkpointPath()), file("{")(l.basePath()))
		}, []string{"Change", "Lines", "Newest", "Read", "Trim", "Verify"}},
		"the base has no state": {func(l *Ledger) error {
			return errors.Join(os.Remove(l.checkpointPath()),
				file(`{"at":{"day":"2026-11-22","offset":0,"hash":"0000000000000000"},"books":{"values":5}}`)(l.basePath()))
		}, []string{"Read", "Trim"}},
	} {
		var failed []string
		try := func(call string, do func(*Ledger) error) {
			dir, now := testkit.MemoryDir(t), newClock()
			l := open(dir, now.Now)
			add(t, l, put{"a", 1})
			now.now = now.now.Add(24 * time.Hour)
			add(t, l, put{"a", 2})
			if err := c.fault(l); err != nil {
				t.Fatal(err)
			}
			if call != "Sync" {
				l = open(dir, now.Now) // Sync is about what this process has appended
			}
			if do(l) != nil {
				failed = append(failed, call)
			}
			if at := paths.Dir(dir).Lock("ledger"); name != "the lock is a folder" && !lock.Free(at) {
				t.Errorf("%s: %s leaves the lock", name, call)
			}
		}
		for call, do := range calls {
			try(call, do)
		}
		try("Sync", (*Ledger).Sync)
		if slices.Sort(failed); !slices.Equal(failed, c.fail) {
			t.Errorf("%s: %q fail, want %q", name, failed, c.fail)
		}
	}
}
