package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// TestEachFault: whichever system call fails, a file has what was written if there is no error; else it has what it had, or, where it was
// replaced and only the directory could not be synced, what was written.
func TestEachFault(t *testing.T) {
	t.Parallel()
	disk := store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}
	type value struct{ N int }
	for name, c := range map[string]struct {
		before, after string
		do            func(path string) error
		replaces      bool
	}{
		"append":            {"{\"N\":1}\n", "{\"N\":1}\n{\"N\":2}\n", func(path string) error { return store.AppendJSON(path, store.Synced, value{2}) }, false},
		"append to a line":  {"{\"N\"", "{\"N\"\n{\"N\":2}\n", func(path string) error { return store.AppendJSON(path, store.Synced, value{2}) }, false},
		"append to nothing": {"", "{\"N\":2}\n", func(path string) error { return store.AppendJSON(path, store.Synced, value{2}) }, false},
		"replace":           {"old", "new", func(path string) error { return store.Replace(path, []byte("new")) }, true},
		"create":            {"", "new", func(path string) error { return store.Create(path, []byte("new")) }, true},
		"remove":            {"old", "", store.Remove, true},
		"edit": {"{\"N\":1}", "{\n  \"N\": 2\n}\n", func(path string) error {
			return store.EditJSON(t.Context(), disk, path+".lock", path, func(v *value) error {
				v.N++
				return nil
			})
		}, true},
	} {
		for fault := range testkit.Faults(t, syscall.EIO) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if c.before != "" {
				write(t, path, c.before)
			}
			var err error
			fault.In(dir, func() { err = c.do(path) })
			text, _ := os.ReadFile(path)
			got, want := string(text), c.after
			if err != nil {
				want = c.before
			}
			undone := c.replaces && strings.HasSuffix(fault.Call, " .") && got == c.after
			if got != want && !undone || err != nil && (fault.Call == "" || !errors.Is(err, syscall.EIO)) {
				t.Errorf("%s, %q fails: %v, then it holds %q, want %q", name, fault.Call, err, got, want)
			}
			for _, left := range testkit.OpenFiles(t, dir) {
				t.Errorf("%s, %q fails: %s is left open", name, fault.Call, left)
			}
			if err := c.do(path); err != nil && (name != "create" || !errors.Is(err, os.ErrExist)) {
				t.Errorf("%s, %q fails, and so does the next try: %v", name, fault.Call, err)
			}
			if drafts, _ := filepath.Glob(filepath.Join(dir, ".f*")); len(drafts) > 0 && !strings.HasPrefix(fault.Call, "unlink ") {
				t.Errorf("%s, %q fails, and leaves %q", name, fault.Call, drafts)
			}
		}
	}
}
