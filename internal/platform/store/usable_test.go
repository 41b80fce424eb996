package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
)

// TestUsable: what ollim can use, and what is not there yet, is no error. Anything else names its path.
func TestUsable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(path("dir"), 0o700))
	must(os.WriteFile(path("file"), nil, 0o600))
	must(os.Symlink("dir", path("to-dir")))
	must(os.Symlink("file", path("to-file")))
	must(os.Mkdir(path("no-dir"), 0o500))
	must(os.WriteFile(path("no-file"), nil, 0o400))
	for name, c := range map[string]struct {
		look func(string) error
		want error // any error: fs.ErrInvalid
	}{
		"dir": {store.UsableDir, nil}, "file": {store.UsableFile, nil}, "none": {store.UsableDir, nil}, "none.lock": {store.UsableFile, nil},
		"to-dir": {store.UsableDir, fs.ErrInvalid}, "to-file": {store.UsableFile, fs.ErrInvalid},
		"file/x": {store.UsableDir, syscall.ENOTDIR}, "no-dir": {store.UsableDir, fs.ErrPermission}, "no-file": {store.UsableFile, fs.ErrPermission},
	} {
		if errors.Is(c.want, fs.ErrPermission) && os.Geteuid() == 0 {
			continue // root may do everything
		}
		err := c.look(path(name))
		switch {
		case (err != nil) != (c.want != nil), err != nil && !errors.Is(c.want, fs.ErrInvalid) && !errors.Is(err, c.want):
			t.Errorf("%s: %v, want %v", name, err, c.want)
		case err != nil && !strings.HasPrefix(err.Error(), path(name)+": "):
			t.Errorf("%s: %v does not name it", name, err)
		}
	}
	if err := store.UsableDir(path("file")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	if err := store.UsableFile(path("dir")); !errors.Is(err, store.ErrNoFile) {
		t.Errorf("a directory: %v", err)
	}
}
