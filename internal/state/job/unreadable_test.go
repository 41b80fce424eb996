package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// TestLoadUnreadable reads as somebody whom permissions bind.
func TestLoadUnreadable(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	_, dir := shelfOf(t, map[string]string{"a.md": good("one"), "b.md": good("two")})
	if err := os.Chmod(filepath.Join(dir.Routines(), "a.md"), 0); err != nil {
		t.Fatal(err)
	}
	s := load(t, dir)
	if got := faults(s.Faults); got != "routines/a.md: cannot be read: permission denied" || len(s.Jobs) != 1 {
		t.Errorf("%s, %d jobs", got, len(s.Jobs))
	}
}
