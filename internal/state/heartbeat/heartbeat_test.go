package heartbeat

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func at(dir string, warn func(string)) Book {
	return Book{paths.Dir(dir), store.Disk{Now: time.Now, Warn: warn}}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Heartbeats() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("heartbeats") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			return at(dir, warn).Owe(ctx, item, "r", "u")
		},
		Acts: map[string]storetest.Act{
			"Owe": func(ctx context.Context, dir string, warn func(string)) error {
				return at(dir, warn).Owe(ctx, "other", "r", "u")
			},
		},
		Count: func(dir string, warn func(string)) (int, error) {
			all, err := at(dir, warn).List()
			return len(all), err
		},
		Corrupt: []string{"{", "[]", `{"a":1}`, "x"},
	})
}

// A call is owed until it was made; that of a later run takes the place of the one before.
func TestCalls(t *testing.T) {
	b := at(t.TempDir(), func(m string) { t.Error(m) })
	ctx := t.Context()
	for _, run := range []string{"r1", "r2"} {
		if err := b.Owe(ctx, "a", run, "http://a/"+run); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.List()
	if c := list["a"]; err != nil || len(list) != 1 || c.Run != "r2" || c.URL != "http://a/r2" || c.At.IsZero() {
		t.Fatalf("%v, %v", list, err)
	}
	if err := b.Done(ctx, map[string]Call{"a": {Run: "r1"}, "b": {Run: "r2"}}); err != nil {
		t.Fatal(err)
	}
	if list, err := b.List(); err != nil || len(list) != 1 {
		t.Errorf("after that of the earlier run: %v, %v", list, err)
	}
	if err := b.Done(ctx, list); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.Home.Heartbeats()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file stays: %v", err)
	}
	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
