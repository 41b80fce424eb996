package testkit_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// TestFaults: each call on a file below the directory fails once, with the error that was asked for, and the last round has no failure.
func TestFaults(t *testing.T) {
	t.Parallel()
	write := func(dir string) (err error) {
		if err := os.WriteFile(filepath.Join(t.TempDir(), "elsewhere"), nil, 0o600); err != nil {
			t.Error("the call on another directory fails:", err)
		}
		f, err := os.Create(filepath.Join(dir, "a"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if _, err := f.Write([]byte("12345678")); err != nil { // eight bytes are not seen
			return err
		}
		if _, err := f.Write([]byte("9")); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		return os.Rename(f.Name(), filepath.Join(dir, "b"))
	}
	var failed []string // os.Rename ignores an error of its look at b
	for fault := range testkit.Faults(t, syscall.EIO) {
		dir := t.TempDir()
		var err error
		fault.In(dir, func() { err = write(dir) })
		if got, want := errors.Is(err, syscall.EIO), fault.Call != "" && fault.Call != "stat b"; got != want {
			t.Errorf("%q: %v", fault.Call, err)
		}
		failed = append(failed, fault.Call)
	}
	if want := []string{"open a", "write a", "fsync a", "stat b", "rename a", ""}; !slices.Equal(failed, want) {
		t.Errorf("%q failed, want %q", failed, want)
	}
}
