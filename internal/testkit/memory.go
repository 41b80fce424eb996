package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// longestTemp is how many bytes TMPDIR may have, so that a socket some directories below it has at most the 107 bytes of its address, also
// behind /proc/self/root, and a file of a crontab the 100 that Debian's crontab takes.
const longestTemp = 24

// Temp is for TestMain, before anything makes a temporary file: it gives the tests a TMPDIR in memory, and a short one where that of the
// user is long. The caller calls remove at the end.
func Temp() (remove func()) {
	inMemory()
	if len(os.TempDir()) <= longestTemp {
		return func() {}
	}
	dir, err := os.MkdirTemp("/tmp", "ollim-")
	if err != nil || os.Chmod(dir, 0o755) != nil { // some tests run as another user
		return func() {}
	}
	_ = os.Setenv("TMPDIR", dir)
	return func() { _ = os.RemoveAll(dir) }
}

// Run is for TestMain: it runs the tests with Temp.
func Run(m *testing.M) {
	defer Temp()()
	m.Run()
}

// inMemory works as root: where TMPDIR is not set and the machine has 8 GB, it executes the test program again with a TMPDIR
// in memory, which ends with it. The tests sync thousands of files, and what a kill leaves is the same there. Elsewhere they use the disk.
// ollim takes what is below /dev, so /dev/shm too, for devices.
func inMemory() {
	self, err := os.Executable()
	unshare, missing := exec.LookPath("unshare")
	if err != nil || missing != nil || os.Getuid() != 0 || os.Getenv("TMPDIR") != "" {
		return
	}
	meminfo, _ := os.ReadFile("/proc/meminfo")
	var total int // in kB; the file system may grow to half of it
	if _, err := fmt.Sscanf(string(meminfo), "MemTotal: %d kB", &total); err != nil || total < 7_500_000 {
		return
	}
	const dir = "/tmp/ci" // that of .ci/run, as short because it begins the paths of sockets; each process has its own there
	if err := os.MkdirAll(dir, 0o755); err != nil || exec.Command(unshare, "--mount", "mount", "-t", "tmpfs", "tmpfs", dir).Run() != nil {
		return
	}
	again := append([]string{unshare, "--mount", "sh", "-c", `mount -t tmpfs -o mode=1777 tmpfs "$TMPDIR" && exec "$0" "$@"`, self}, os.Args[1:]...)
	_ = syscall.Exec(unshare, again, append(os.Environ(), "TMPDIR="+dir))
}

// MemoryDir returns a new directory in memory, if available, for a test with thousands of fsyncs that does not depend
// on the disk. It may be mounted noexec.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ollim-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
