package notice

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func bookAt(dir string, warn func(string)) Book {
	return Book{paths.Dir(dir), store.Disk{Now: time.Now, Warn: warn}}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Notices() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("notices") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			first, err := bookAt(dir, warn).Once(ctx, item)
			if first != (err == nil) { // what cannot be remembered does not count as told
				t.Errorf("Once(%q): %v, %v", item, first, err)
			}
			if err == nil && item == "first" { // for Worked
				_, _, err = bookAt(dir, warn).Failed(ctx, "worked")
			}
			return err
		},
		Acts: map[string]storetest.Act{
			"Worked": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Worked(ctx, "worked")
			},
			"Failed": func(ctx context.Context, dir string, warn func(string)) error {
				n, speak, err := bookAt(dir, warn).Failed(ctx, "j")
				if n != 0 || speak {
					t.Errorf("Failed: %d, %v", n, speak)
				}
				return err
			},
			"Forget": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Forget(ctx, func(string) bool { return false })
			},
		},
		Count: func(dir string, _ func(string)) (int, error) {
			var page struct{ Seen map[string]time.Time }
			text, err := os.ReadFile(paths.Dir(dir).Notices())
			if err == nil {
				err = json.Unmarshal(text, &page)
			}
			return len(page.Seen), err
		},
		Corrupt: []string{"", "{", "[]", `{"seen":{"a":1}}`},
	})
}
