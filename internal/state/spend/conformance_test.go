package spend

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
	return with(Book{Home: paths.Dir(dir), Disk: store.Disk{Now: func() time.Time { return now }, Warn: warn}, Zone: time.UTC, Limits: family})
}

// reserve is an act; a run that could not be written down may not start.
func reserve(t *testing.T, force bool) storetest.Act {
	return func(ctx context.Context, dir string, warn func(string)) error {
		grant, err := bookAt(dir, warn).Reserve(ctx, Claim{Run: "another", Force: force}, nil)
		if err != nil && grant != (granted{}) {
			t.Errorf("Reserve: %+v, %v", grant, err)
		}
		return err
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).State("ledger", "2026-02-24.jsonl") },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("ledger") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			_, err := bookAt(dir, warn).Reserve(ctx, Claim{Run: item, Force: true}, nil)
			return err
		},
		Acts: map[string]storetest.Act{
			"Reserve": reserve(t, false), "Reserve by force": reserve(t, true),
			"Settle": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Settle(ctx, "first", 1)
			},
			"Release": func(ctx context.Context, dir string, warn func(string)) error {
				return bookAt(dir, warn).Release(ctx, "first", 0)
			},
		},
		Count: func(dir string, warn func(string)) (int, error) {
			totals, err := bookAt(dir, warn).Totals()
			return totals.Runs, err
		},
	})
}

func TestPauseConformance(t *testing.T) {
	at := time.Date(2026, 2, 25, 12, 0, 0, 0, time.UTC)
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return bookAt(dir, nil).pausePath() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("pause") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), _ string) error {
			return bookAt(dir, warn).Pause(ctx, at)
		},
		Elsewhere: []string{"Add"}, // it is paused already
		Acts: map[string]storetest.Act{
			"Resume": func(ctx context.Context, dir string, warn func(string)) error { return bookAt(dir, warn).Resume(ctx) },
		},
	})
}
