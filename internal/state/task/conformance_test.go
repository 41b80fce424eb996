package task

import (
	"context"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func bookAt(dir string) Book {
	return Book{Home: paths.Dir(dir), Disk: store.Disk{Now: time.Now}, Zone: time.UTC}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Tasks() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("tasks") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, _ func(string), item string) error {
			_, err := bookAt(dir).Add(ctx, Draft{Text: item})
			return err
		},
		Acts: map[string]storetest.Act{
			"Done": func(ctx context.Context, dir string, _ func(string)) error {
				_, err := bookAt(dir).Done(ctx, "1")
				return err
			},
			"Remove": func(ctx context.Context, dir string, _ func(string)) error {
				_, err := bookAt(dir).Remove(ctx, "1")
				return err
			},
			"Edit": func(ctx context.Context, dir string, _ func(string)) error {
				_, err := bookAt(dir).Edit(ctx, "1", Draft{Text: "other"})
				return err
			},
		},
		Count: func(dir string, _ func(string)) (int, error) {
			all, err := bookAt(dir).All()
			return len(all), err
		},
	})
}
