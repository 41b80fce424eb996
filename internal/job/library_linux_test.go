package job_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestLoadUnreadable reads as somebody whom permissions bind: root gives up its own on this thread.
func TestLoadUnreadable(t *testing.T) {
	_, dir := shelfOf(t, map[string]string{"a.md": good("one"), "b.md": good("two")})
	if err := os.Chmod(filepath.Join(dir.Routines(), "a.md"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		becomeNobody(t, filepath.Dir(string(dir)))
	}
	s := load(t, dir)
	if got := faults(s.Faults); got != "routines/a.md: cannot be read: permission denied" || len(s.Jobs) != 1 {
		t.Errorf("%s, %d jobs", got, len(s.Jobs))
	}
}

// becomeNobody gives everything below a folder to nobody, and lets this thread look at files as nobody until the test ends.
func becomeNobody(t *testing.T, folder string) {
	t.Helper()
	const nobody = 65534
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}
