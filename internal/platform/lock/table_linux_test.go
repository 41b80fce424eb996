package lock_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// waits are the waits of a table, as one.
func waits(table *lock.Table) map[string]func(context.Context, string) (release func(), err error) {
	return map[string]func(context.Context, string) (func(), error){
		"Wait": func(ctx context.Context, path string) (func(), error) {
			h, err := table.Wait(ctx, path)
			return h.Release, err
		},
		"WaitGuard": func(ctx context.Context, path string) (func(), error) {
			g, err := table.WaitGuard(ctx, path)
			return g.Release, err
		},
	}
}

// entries counts what is in a directory.
func entries(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestTimedOutWaits: one thread and one descriptor wait for a lock that another process holds, however many waits have timed out.
func TestTimedOutWaits(t *testing.T) {
	table := &lock.Table{}
	for name, wait := range waits(table) {
		path := lockPath(t)
		holder := start(t, "hold", path)
		holder.line(t)
		descriptors, threads := 0, 0
		for round := range 11 {
			if round == 1 { // the first has made the threads that so many goroutines want
				descriptors, threads = entries(t, "/proc/self/fd"), entries(t, "/proc/self/task")
			}
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					defer cancel()
					if _, err := wait(ctx, path); !errors.Is(err, lock.ErrBusy) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
		}
		if more := entries(t, "/proc/self/fd") - descriptors; more > 1 {
			t.Errorf("%s: 200 timed-out waits left %d descriptors", name, more)
		}
		if more := entries(t, "/proc/self/task") - threads; more > 25 { // 20 goroutines at once may want a thread each
			t.Errorf("%s: 200 timed-out waits left %d threads", name, more)
		}
		holder.kill(t)
		release, err := wait(t.Context(), path)
		if err != nil {
			t.Fatalf("%s: after the holder: %v", name, err)
		}
		release()
		eventually(t, "the wait that went on ends", func() bool { return entries(t, "/proc/self/fd") <= descriptors && lock.Free(path) })
	}
}

// TestWaitersComeInOrder: the lock goes to the waiters in the order of their calls, and waiters that have given up are skipped.
func TestWaitersComeInOrder(t *testing.T) {
	table := &lock.Table{}
	for name, wait := range waits(table) {
		path := lockPath(t)
		held := must[*lock.Held](t)(lock.Try(path))
		const waiters = 20
		order := make(chan int, waiters)
		gaveUp := make(chan error, waiters)
		var all sync.WaitGroup
		impatient, giveUp := context.WithCancel(t.Context())
		for i := range waiters {
			ctx, sink := t.Context(), make(chan struct{})
			if i%3 == 0 {
				ctx = impatient
			}
			all.Go(func() {
				close(sink)
				release, err := wait(ctx, path)
				if i%3 == 0 {
					gaveUp <- err
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				release()
			})
			<-sink
			eventually(t, "the waiter is in the queue", func() bool { return table.Waiters(path) == i+1 })
		}
		giveUp()
		for range (waiters + 2) / 3 {
			if err := <-gaveUp; !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrBusy) {
				t.Errorf("%s: %v", name, err)
			}
		}
		held.Release()
		all.Wait()
		close(order)
		last := 0
		for i := range order {
			if i < last {
				t.Errorf("%s: waiter %d came after %d", name, i, last)
			}
			last = i
		}
	}
}

// TestTableSharesWithProcesses: goroutines with one table and other processes exclude each other.
func TestTableSharesWithProcesses(t *testing.T) {
	path := lockPath(t)
	var actors []*actor
	for range 2 {
		actors = append(actors, start(t, "count", path))
	}
	table := &lock.Table{}
	var all sync.WaitGroup
	var given atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				held, err := table.Wait(ctx, path)
				cancel()
				if errors.Is(err, lock.ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				given.Add(1)
				if err := addOne(path + ".number"); err != nil {
					t.Error(err)
				}
				held.Release()
			}
		})
	}
	all.Wait()
	for _, a := range actors {
		if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	want := strconv.Itoa(200 + int(given.Load()))
	if got := string(must[[]byte](t)(os.ReadFile(path + ".number"))); got != want {
		t.Errorf("counted to %s, not to %s", got, want)
	}
	eventually(t, "free", func() bool { return lock.Free(path) })
}

// TestWaitOfADeletedFile: a waiter does not wait for a lock file that is gone.
func TestWaitOfADeletedFile(t *testing.T) {
	table := &lock.Table{}
	path := lockPath(t)
	guard := must[*lock.Guard](t)(lock.TryGuard(path))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := table.WaitGuard(ctx, path); !errors.Is(err, lock.ErrBusy) {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again := must[*lock.Guard](t)(table.WaitGuard(t.Context(), path)) // while the wait for the old file continues
	if err := again.Delete(); err != nil {
		t.Fatal(err)
	}
	guard.Release()
	eventually(t, "the wait for the old file ends", func() bool { return table.Queues() == 0 })
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a wait that was given up made the file anew: %v", err)
	}
}

func TestWaitFails(t *testing.T) {
	path := lockPath(t)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, wait := range waits(&lock.Table{}) {
		var failed *lock.Failed
		if _, err := wait(t.Context(), path); !errors.As(err, &failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
