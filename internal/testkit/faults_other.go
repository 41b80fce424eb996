//go:build !linux || !(amd64 || arm64)

package testkit

import (
	"syscall"
	"testing"
)

// faultyThread is for Linux.
type faultyThread struct{ work chan func() }

func newFaultyThread(t testing.TB, _ syscall.Errno, _ bool) *faultyThread {
	t.Helper()
	t.Skip("the kernel lets calls fail on Linux only, on amd64 and arm64")
	return nil
}

func (*faultyThread) run(string, int, func()) string { return "" }
