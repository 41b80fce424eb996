package lock_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
)

// An engine that has inherited the guard keeps it when ollim is killed, for as long as it runs itself.
func TestGuardOutlivesItsTaker(t *testing.T) {
	path := lockPath(t)
	parent := start(t, "parent", path)
	engine := parent.engine(t)
	parent.kill(t)
	if _, err := lock.TryGuard(path); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("the engine runs on, but the guard is not busy: %v", err)
	}
	if lock.Free(path) {
		t.Error("the engine runs on, but the guard is free")
	}
	if err := syscall.Kill(engine, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "free when the engine has ended", func() bool { return lock.Free(path) })
	must[*lock.Guard](t)(lock.TryGuard(path)).Release()
}

// Nobody inherits what is not given.
func TestGuardIsNotInheritedUnasked(t *testing.T) {
	path := lockPath(t)
	parent := start(t, "parent-without", path)
	engine := parent.engine(t)
	parent.kill(t)
	eventually(t, "free although the engine runs on", func() bool { return lock.Free(path) })
	if err := syscall.Kill(engine, 0); err != nil {
		t.Errorf("the engine has ended before: %v", err)
	}
}

// Release is for the end of a run: it ends the guard for the child as well.
func TestReleaseEndsTheGuardForAll(t *testing.T) {
	path := lockPath(t)
	guard := must[*lock.Guard](t)(lock.TryGuard(path))
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{guard.File()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if lock.Free(path) {
		t.Error("free while held")
	}
	guard.Release()
	if !lock.Free(path) {
		t.Error("not free after Release")
	}
}

// A process that is just being forked shares every descriptor for a moment; closing alone would leave the lock with it.
func TestReleaseWhileOthersFork(t *testing.T) {
	path := lockPath(t)
	done := make(chan struct{})
	var forks sync.WaitGroup
	for range 2 {
		forks.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command("true").Run()
				}
			}
		})
	}
	for i := range 500 {
		guard, err := lock.TryGuard(path)
		if err != nil {
			t.Errorf("take %d: %v", i, err)
			break
		}
		guard.Release()
	}
	close(done)
	forks.Wait()
}

func TestNotes(t *testing.T) {
	path := lockPath(t)
	if got := lock.ReadNote(path); got != "" {
		t.Errorf("before anybody: %q", got)
	}
	for i, text := range []string{"run-1\n", "a longer note\n", "x", "", "run-2\n"} {
		guard := must[*lock.Guard](t)(lock.TryGuard(path))
		if i > 0 {
			if got, want := guard.LastNote(), []string{"run-1\n", "a longer note\n", "x", ""}[i-1]; got != want {
				t.Errorf("LastNote %q, want %q", got, want)
			}
		}
		if err := guard.Note("something else\n"); err != nil {
			t.Fatal(err)
		}
		if err := guard.Note(text); err != nil {
			t.Fatal(err)
		}
		if got := lock.ReadNote(path); got != text { // by a process that does not hold it
			t.Errorf("ReadNote %q, want %q", got, text)
		}
		guard.Release()
		if got := lock.ReadNote(path); got != text {
			t.Errorf("after Release %q, want %q", got, text)
		}
	}
}

// Whoever reads a note while it is being replaced by one of the same length must not find it empty: it tells which run
// was cut off.
func TestNoteIsNeverEmpty(t *testing.T) {
	path := lockPath(t)
	guard := must[*lock.Guard](t)(lock.TryGuard(path))
	defer guard.Release()
	if err := guard.Note("run-0\n"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 2000 {
			if err := guard.Note("run-" + strconv.Itoa(i%10) + "\n"); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		if got := lock.ReadNote(path); len(got) != 6 || !strings.HasPrefix(got, "run-") {
			t.Errorf("read %q", got)
			<-done
			return
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestNoteOfAReleasedGuard(t *testing.T) {
	guard := must[*lock.Guard](t)(lock.TryGuard(lockPath(t)))
	guard.Release()
	var failed *lock.Failed
	if err := guard.Note("x"); !errors.As(err, &failed) {
		t.Errorf("Note: %v", err)
	}
	var none *lock.Guard
	none.Release() // there is nothing to release
}

// TestDelete lets many goroutines take a guard, and delete its file each time: one is inside at a time all the same.
func TestDelete(t *testing.T) {
	path := lockPath(t)
	var inside atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				guard, err := new(lock.Table).WaitGuard(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				runtime.Gosched()
				inside.Add(-1)
				if err := guard.Delete(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}
