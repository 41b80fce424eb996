package conversation

import (
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/session"
)

// TestMainOutlivesClear: a turn that began before the owner cleared the conversation does not save its session afterwards, in its
// first turn or a later one; the next turn does.
func TestMainOutlivesClear(t *testing.T) {
	for name, before := range map[string]string{"first": "", "later": "old"} {
		t.Run(name, func(t *testing.T) {
			dir := paths.Dir(t.TempDir())
			book := session.Book{Home: dir, Zone: time.UTC, Disk: store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}}
			if before != "" {
				if err := book.SetMain(before); err != nil {
					t.Fatal(err)
				}
			}
			save := func(m *Main, id, want string) {
				t.Helper()
				if err := m.Save(t.Context(), id); err != nil {
					t.Error(err)
				}
				if got, err := book.Main(); got != want || err != nil {
					t.Errorf("main is %q, %v, want %q", got, err, want)
				}
			}
			open := func() *Main {
				m := &Main{Sessions: book}
				if _, err := m.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				return m
			}
			old := open()
			if before != "" {
				save(old, "a", "a")
				save(old, "b", "b")
			}
			if _, err := book.ClearMainNow(t.Context()); err != nil {
				t.Fatal(err)
			}
			save(old, "c", "")
			next := open()
			save(next, "d", "d")
			save(old, "c", "d")
			save(next, "e", "e")
		})
	}
}
