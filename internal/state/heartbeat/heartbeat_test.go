package heartbeat

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

func at(t *testing.T, dir string) Book {
	return Book{ledger.New(paths.Dir(dir), store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}, Facts())}
}

// A call is owed until it was made; that of a later run takes the place of the one before.
func TestCalls(t *testing.T) {
	b := at(t, t.TempDir())
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
	if err := b.Done(ctx, Calls{"a": {Run: "r1"}, "b": {Run: "r2"}}); err != nil {
		t.Fatal(err)
	}
	if list, err := b.List(); err != nil || len(list) != 1 {
		t.Errorf("after that of the earlier run: %v, %v", list, err)
	}
	if err := b.Done(ctx, list); err != nil {
		t.Fatal(err)
	}
	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// The file of an earlier version is taken over.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Former)
	if err := os.WriteFile(path, []byte(`{"a": {"url": "http://a/", "run": "r1", "at": "2026-02-24T14:30:00Z"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := at(t, dir)
	b.Ledger.Imports = []ledger.Import{{Store: "heartbeat", Add: func(tx *ledger.Tx) error { return Import(tx, path) }}}
	list, err := b.List()
	if c := list["a"]; err != nil || len(list) != 1 || c.URL != "http://a/" || c.Run != "r1" || !c.At.Equal(time.Date(2026, 2, 24, 14, 30, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", list, err)
	}
}
