package approval

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

func TestConformance(t *testing.T) {
	at := func(dir string, warn func(string)) Book {
		return Book{Home: paths.Dir(dir), Disk: store.Disk{Now: time.Now, Warn: warn}, Zone: time.UTC}
	}
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Approvals() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("approvals") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			return at(dir, warn).Approve(ctx, Subject{Key: item}, Owner)
		},
		Acts: map[string]storetest.Act{
			"Forget": func(ctx context.Context, dir string, warn func(string)) error {
				return at(dir, warn).Forget(ctx, func(string, Approval) bool { return false })
			},
		},
		Count: func(dir string, _ func(string)) (int, error) {
			var all map[string]json.RawMessage
			text, err := os.ReadFile(paths.Dir(dir).Approvals())
			if err == nil {
				err = json.Unmarshal(text, &all)
			}
			return len(all), err
		},
	})
}
