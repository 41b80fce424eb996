package budget

import (
	"context"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

// bookAt is a book at noon of 24 February 2026.
func bookAt(dir string, warn func(string)) Book {
	now := time.Date(2026, 2, 24, 12, 0, 0, 0, time.UTC)
	return Book{Home: paths.Dir(dir), Disk: store.Disk{Now: func() time.Time { return now }, Warn: warn}, Zone: time.UTC}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).PingBudget() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("ping_budget") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), _ string) error {
			return bookAt(dir, warn).TakeCritical(ctx)
		},
		Acts: map[string]storetest.Act{
			"Take": func(ctx context.Context, dir string, warn func(string)) error {
				ok, s, err := bookAt(dir, warn).Take(ctx)
				if err != nil && (ok || s != (Status{})) {
					t.Errorf("Take: %v, %+v", ok, s)
				}
				return err
			},
			"Return": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Return(ctx, true)
			},
			"Set": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Set(ctx, new(1), nil)
			},
		},
		Count: func(dir string, warn func(string)) (int, error) {
			s, err := bookAt(dir, warn).Status()
			return s.CriticalUsed, err
		},
		Corrupt: []string{"", "{", "[]", "3", `{"available": NaN}`},
	})
}
