package slot

import (
	"context"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func TestSchedulesConformance(t *testing.T) {
	at := func(dir string, warn func(string)) Book {
		return Book{Home: paths.Dir(dir), Disk: store.Disk{Now: time.Now, Warn: warn}, Zone: time.UTC}
	}
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Schedules() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("schedules") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			_, err := at(dir, warn).Note(ctx, []Schedule{{Job: item, Name: item, Cron: "@daily", Enabled: true}}, nil)
			return err
		},
		Count: func(dir string, warn func(string)) (int, error) {
			history, err := at(dir, warn).History()
			return len(history), err
		},
	})
}
