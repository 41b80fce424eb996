package object

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

func at(dir string, warn func(string), now time.Time) Box {
	return Box{Home: paths.Dir(dir), Disk: store.Disk{Now: func() time.Time { return now }, Warn: warn}}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return paths.Dir(dir).Objects() },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("objects") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, warn func(string), item string) error {
			_, err := at(dir, warn, time.Now()).Put(ctx, []byte(item))
			return err
		},
		Acts: map[string]storetest.Act{"Sweep": func(ctx context.Context, dir string, warn func(string)) error {
			return at(dir, warn, time.Now()).Sweep(ctx, time.Now().Add(time.Hour), func(string) bool { return false })
		}},
		Count: func(dir string, _ func(string)) (int, error) {
			objects, err := store.List(paths.Dir(dir).Objects())
			return len(slices.DeleteFunc(objects, func(e os.DirEntry) bool { return store.IsDraft(e.Name()) })), err
		},
	})
}

func TestPutGetSweep(t *testing.T) {
	dir, noon := t.TempDir(), time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	fail := func(text string) { t.Error(text) }
	box, later := at(dir, fail, noon), at(dir, fail, noon.Add(time.Hour))
	put := func(b Box, content string) string {
		t.Helper()
		hash, err := b.Put(t.Context(), []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	if box.Any() {
		t.Error("something is there")
	}
	one, two, three := put(box, "one"), put(box, "two"), put(box, "three")
	if again := put(later, "two"); again != two || !box.Any() {
		t.Errorf("%s and %s", again, two)
	}
	if got, err := box.Get(one); string(got) != "one" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := box.Sweep(t.Context(), noon.Add(time.Minute), func(hash string) bool { return hash == three }); err != nil {
		t.Fatal(err)
	}
	for hash, want := range map[string]bool{one: false, two: true, three: true, "": false, "../../config.yaml": false} {
		if _, err := box.Get(hash); (err == nil) != want || err != nil && !errors.Is(err, errGone) {
			t.Errorf("%s: %v", hash, err)
		}
	}
	if err := os.WriteFile(filepath.Join(paths.Dir(dir).Objects(), two), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Get(two); !errors.Is(err, errGone) {
		t.Errorf("%v", err)
	}
	put(box, "two")
	if got, err := box.Get(two); string(got) != "two" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
