package lock_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
)

// TestUncachedNotes reads notes as over NFS, from a file system that demands whole blocks or none. bench/nfs shows that what another machine
// writes is seen.
func TestUncachedNotes(t *testing.T) {
	t.Parallel()
	path := lockPath(t)
	guard := must[*lock.Guard](t)(lock.TryGuard(path))
	defer guard.Release()
	for _, size := range []int{1, 42, 4095, 4096, 4097, 8192, 10_000} {
		text := strings.Repeat("n", size-1) + "\n"
		if err := guard.Note(text); err != nil {
			t.Fatal(err)
		}
		got, err := lock.Uncached(path)
		if errors.Is(err, syscall.EINVAL) {
			testkit.Missing(t, "the file system of TMPDIR reads everything through the cache: set TMPDIR to a directory on a disk")
		}
		if err != nil || got != text {
			t.Errorf("%d bytes: read %d, %v", size, len(got), err)
		}
	}
	if _, err := lock.Uncached(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
