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
			return bookAt(dir, warn).Edit(ctx, func(p *Page) bool {
				p.Set(Key(JobKind, item), Entry{Kind: JobKind, Subject: item, Since: time.Now()})
				return true
			})
		},
		Acts: map[string]storetest.Act{
			"Edit": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Edit(ctx, func(p *Page) bool {
					clear(p.Causes)
					p.Unsent = append(p.Unsent, Message{ID: "m"})
					return true
				})
			},
		},
		Count: func(dir string, _ func(string)) (int, error) {
			var page struct{ Causes map[string]any }
			text, err := os.ReadFile(paths.Dir(dir).Notices())
			if err == nil {
				err = json.Unmarshal(text, &page)
			}
			return len(page.Causes), err
		},
		Corrupt: []string{"", "{", "[]", `{"causes":{"a":1}}`},
	})
}
