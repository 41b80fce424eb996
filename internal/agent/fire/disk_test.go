package fire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/testkit"
)

// broken is a data directory on a disk of which one call fails.
type broken struct {
	*hooks
	warned []string // what was reported on standard error
}

func newBroken(t *testing.T) *broken {
	t.Helper()
	b := &broken{hooks: newHooks(t)}
	b.now = nine.Add(time.Minute)
	must(t, b.Ledger.Change(t.Context(), store.Buffered, func(tx *ledger.Tx) error { return heartbeat.Owe(tx, "none", "none", "none") }))
	b.Disk.Warn = func(message string) { b.warned = append(b.warned, message) }
	b.Runs.Disk, b.Slots.Disk, b.Spend.Disk, b.Questions.Disk, b.Inbox.Disk, b.Updates.Disk = b.Disk, b.Disk, b.Disk, b.Disk, b.Disk, b.Disk
	return b
}

// left lists the files of the directory that this process has open, and the locks that are held.
func (b *broken) left() (all []string) {
	b.t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(b.t, err)
	for _, e := range entries {
		if path, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(path, string(b.Home)+"/") {
			all = append(all, "open: "+path)
		}
	}
	locks, err := filepath.Glob(b.Home.Lock("*"))
	must(b.t, err)
	runs, err := filepath.Glob(b.Home.Run("20260302T090000.000Z-000000", "..", "*", "running"))
	must(b.t, err)
	for _, path := range append(locks, runs...) {
		if !lock.Free(path) {
			all = append(all, "locked: "+path)
		}
	}
	return all
}

// damaged prepares a call for TestEachFault. state is what must have come of it.
type damaged func(b *broken) (call func() error, state func() any)

// TestEachFault: whichever system call fails, a call returns an error, or warns, or has done all that it says. It leaves no open file and
// no lock. If it returns an error, a second call finds or does all that was to be done.
func TestEachFault(t *testing.T) {
	t.Parallel()
	for name, prepare := range damagedCalls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var done []string
			var last string
			for fault := range testkit.Faults(t, syscall.EIO) {
				b := newBroken(t)
				call, state := prepare(b)
				if last = b.after(fault, call, state); last != "" {
					done = append(done, fault.Call+" fails: "+last)
				}
			}
			if last == "" {
				t.Error("without a fault it warns")
			}
			for _, d := range done {
				if !strings.HasSuffix(d, " fails: "+last) {
					t.Errorf("%s\nwant %s", d, last)
				}
			}
		})
	}
}

var refused = regexp.MustCompile("input/output error|cannot be read")

// after makes a call in which a system call fails, again if it returns an error, and returns what has come of it; "" if the failure was
// reported on standard error.
func (b *broken) after(fault *testkit.Fault, call func() error, state func() any) string {
	b.t.Helper()
	before := len(b.left())
	b.warned = nil
	var err error
	fault.In(string(b.Home), func() { err = call() })
	if left := b.left(); len(left) > before {
		b.t.Errorf("%s fails: left %q", fault.Call, left)
	}
	switch {
	case err != nil:
		if fault.Call == "" || !errors.Is(err, errLater) && !refused.MatchString(err.Error()+fmt.Sprint(b.warned)) {
			b.t.Errorf("%q fails: %v", fault.Call, err)
		}
		_ = call()
	case len(b.warned) > 0:
		return ""
	}
	return fmt.Sprint(state())
}
