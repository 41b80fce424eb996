package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// faulty lets a copy of the test program write once, with its n-th fsync failing, and returns what it says.
func faulty(t *testing.T, role, path string, n string) string {
	t.Helper()
	strace := testkit.Program(t, "strace", "strace") // makes fsync fail
	cmd := testkit.Child(t, role, path)
	cmd.Args = append([]string{strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=" + n, cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Stderr = strace, nil
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "strace: ") || strings.Contains(string(out), "PTRACE") {
		testkit.Missing(t, "strace may not trace here (allow ptrace): %s", out)
	}
	if err == nil {
		t.Fatalf("%s: the failure of fsync %s went unseen", role, n)
	}
	return strings.TrimSpace(string(out))
}

func TestFailingSync(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	const old = "{\"n\":1}\n"
	write(t, path, old)
	want := path + ": not written: input/output error"
	if got := faulty(t, "append once", path, "1"); got != want {
		t.Errorf("append: %q, want %q", got, want)
	}
	if got := faulty(t, "replace once", path, "1"); got != want {
		t.Errorf("replace: %q, want %q", got, want)
	}
	if got := read(t, path); got != old {
		t.Errorf("it holds %q, want %q", got, old)
	}
	only(t, dir, "f")
	if got := faulty(t, "replace once", path, "2"); !strings.HasSuffix(got, "input/output error") { // that of the folder
		t.Errorf("replace, folder: %q", got)
	}
	if got := read(t, path); got != "new" { // it may be on the disk, so it is not undone
		t.Errorf("it holds %q", got)
	}
	only(t, dir, "f")
	if got := faulty(t, "append once", filepath.Join(dir, "g"), "2"); !strings.HasSuffix(got, "input/output error") {
		t.Errorf("append to a new file, folder: %q", got)
	}
}
