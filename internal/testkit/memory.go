package testkit

import (
	"os"
	"testing"
)

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
