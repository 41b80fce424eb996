package testkit

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user and group id of nobody, which own nothing.
const nobody = 65534

// Unprivileged reports whether the process belongs to an ordinary user, so that the calling test can continue. As root
// it runs the test in a process of user nobody instead, which gets env besides; then the test must return.
func Unprivileged(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	dir := t.TempDir()
	exe, temp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	copyProgram(t, exe)
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o755, exe: 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(temp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir = temp
	cmd.Env = append(cmd.Environ(), "TMPDIR="+temp, "HOME="+temp)
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	return false
}

// copyProgram copies this test program, which may be in a directory that only root can read.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	syscall.ForkLock.RLock() // a child that another test forks now would hold the file open for writing: "text file busy"
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(f, from); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
