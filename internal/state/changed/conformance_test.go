package changed

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func TestConformance(t *testing.T) {
	at := func(dir string, warn func(string)) Book {
		return Book{paths.Dir(dir), store.Disk{Now: time.Now, Warn: warn}}
	}
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).State("changed") },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("changed") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			return at(dir, warn).Commit(ctx, "k"+item, []byte(item))
		},
		Elsewhere: []string{"Propose"},
		Acts: map[string]storetest.Act{
			"Propose": func(ctx context.Context, dir string, warn func(string)) error {
				b := at(dir, warn)
				record := filepath.Dir(b.proposals(run))
				if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
					return err
				}
				if err := os.Mkdir(record, 0o500); err != nil && !errors.Is(err, fs.ErrExist) {
					return err
				}
				return b.Propose(ctx, run, "a", nil)
			},
			"CommitRun": func(ctx context.Context, dir string, warn func(string)) error {
				b := at(dir, warn)
				other := "20260224T143000.000Z-bcdefa"
				if err := os.MkdirAll(b.proposals(other), 0o700); err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(b.proposals(other), "a"), nil, 0o600); err != nil {
					return err
				}
				return b.CommitRun(ctx, other, Job{"routine", "r"})
			},
		},
		Count: func(dir string, _ func(string)) (int, error) {
			keys, err := store.List(paths.Dir(dir).State("changed"))
			return len(keys), err
		},
	})
}
