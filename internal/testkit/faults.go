package testkit

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Fault is one system call on a file that fails, as on a broken disk.
type Fault struct {
	// Call is what failed in the last In, such as "fsync state/ledger/2026-11-23.jsonl"; "" if there were too few calls.
	Call string
	Gone bool // all later calls fail, too

	nth    int
	thread *faultyThread
}

// Faults is a loop in which each round lets another system call fail: In of the first round lets its first call fail, In of the second
// round its second call. The loop ends after a round in which no call failed. The kernel asks this process about the calls of one thread
// (seccomp), so no other process is needed. Calls of goroutines and programs that the function of In starts do not fail. Unless CI=true,
// only the first two of equal calls on a file fail.
//
//	for fault := range testkit.Faults(t, syscall.EIO) {
//		dir := t.TempDir()
//		var err error
//		fault.In(dir, func() { err = save(dir) })
func Faults(t testing.TB, errno syscall.Errno) iter.Seq[*Fault] {
	t.Helper()
	return rounds(t, errno, false)
}

// EachFault is Faults, followed by the same rounds with Gone set: then all calls after the first that fails fail too, as on a disk that was
// removed. In these rounds the code cannot undo what it has done before the fault.
func EachFault(t testing.TB, errno syscall.Errno) iter.Seq[*Fault] {
	t.Helper()
	return func(yield func(*Fault) bool) {
		for _, gone := range []bool{false, true} {
			for f := range rounds(t, errno, gone) {
				if !yield(f) {
					return
				}
			}
		}
	}
}

func rounds(t testing.TB, errno syscall.Errno, gone bool) iter.Seq[*Fault] {
	t.Helper()
	return func(yield func(*Fault) bool) {
		thread := newFaultyThread(t, errno, gone)
		defer close(thread.work)
		for n := 1; ; n++ {
			f := &Fault{Gone: gone, nth: n, thread: thread}
			if !yield(f) || f.Call == "" {
				return
			}
		}
	}
}

// In calls do and lets the call of this round fail, counting the calls on files below dir.
func (f *Fault) In(dir string, do func()) {
	f.Call = f.thread.run(dir, f.nth, do)
}

// OpenFiles lists the files below dir that this process has open, except for known ones.
func OpenFiles(t testing.TB, dir string, known ...string) (open []string) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if path, err := os.Readlink(fd); err == nil && strings.HasPrefix(path, dir+"/") && !slices.Contains(known, path) {
			open = append(open, path)
		}
	}
	return open
}
