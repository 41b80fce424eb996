package lock_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
)

// takers are the four ways to take a lock, as one.
func takers() map[string]func(path string) (release func(), err error) {
	ctx := context.Background()
	held := func(h *lock.Held, err error) (func(), error) { return func() { h.Release() }, err }
	guard := func(g *lock.Guard, err error) (func(), error) { return func() { g.Release() }, err }
	return map[string]func(string) (func(), error){
		"Try":       func(p string) (func(), error) { return held(lock.Try(p)) },
		"Wait":      func(p string) (func(), error) { return held(new(lock.Table).Wait(ctx, p)) },
		"TryGuard":  func(p string) (func(), error) { return guard(lock.TryGuard(p)) },
		"WaitGuard": func(p string) (func(), error) { return guard(new(lock.Table).WaitGuard(ctx, p)) },
	}
}

func TestEachExcludesEach(t *testing.T) {
	for first, take := range takers() {
		path := lockPath(t)
		release, err := take(path)
		if err != nil {
			t.Fatal(err)
		}
		for second, again := range takers() {
			if strings.HasPrefix(second, "Try") {
				if _, err := again(path); !errors.Is(err, lock.ErrBusy) || !strings.HasPrefix(err.Error(), path+": ") {
					t.Errorf("%s while %s holds: %v", second, first, err)
				}
			}
		}
		release()
		release() // does nothing
		for second, again := range takers() {
			release, err := again(path)
			if err != nil {
				t.Errorf("%s after %s: %v", second, first, err)
			}
			release()
		}
	}
}

func TestOnlyOneGoroutineIsInside(t *testing.T) {
	path := lockPath(t)
	var inside, entered, most atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		take := takers()[[]string{"Wait", "WaitGuard", "Try", "TryGuard"}[i%4]]
		all.Go(func() {
			for range 50 {
				release, err := take(path)
				if errors.Is(err, lock.ErrBusy) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				entered.Add(1)
				inside.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if most.Load() != 1 || entered.Load() < 200 {
		t.Errorf("%d inside at once, %d entered", most.Load(), entered.Load())
	}
}

func TestOnlyOneProcessIsInside(t *testing.T) {
	path := lockPath(t)
	var actors []*actor
	for range 4 {
		actors = append(actors, start(t, "count", path))
	}
	if err := count(path, 100); err != nil {
		t.Fatal(err)
	}
	for _, a := range actors {
		if err := a.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(must[[]byte](t)(os.ReadFile(path + ".number"))); got != "500" {
		t.Errorf("5 processes counted to %s, not to 500", got)
	}
}

func TestWaitGivesUp(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a lock that is forgotten, not released, goes with the garbage
	for name, wait := range map[string]func(context.Context, string) error{
		"Wait":      func(ctx context.Context, p string) error { _, err := new(lock.Table).Wait(ctx, p); return err },
		"WaitGuard": func(ctx context.Context, p string) error { _, err := new(lock.Table).WaitGuard(ctx, p); return err },
	} {
		path := lockPath(t)
		held := must[*lock.Held](t)(lock.Try(path))
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		err := wait(ctx, path)
		if took := time.Since(start); !errors.Is(err, lock.ErrBusy) || took < 50*time.Millisecond {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		held.Release()
		eventually(t, name+" lets go of what it has given up", func() bool { return lock.Free(path) })
		for range 20 { // and does not come back
			must[*lock.Held](t)(lock.Try(path)).Release()
		}
	}
}

func TestWaitGetsIt(t *testing.T) {
	for _, name := range []string{"Wait", "WaitGuard"} {
		path := lockPath(t)
		held := must[*lock.Held](t)(lock.Try(path))
		got := make(chan error)
		go func() {
			release, err := takers()[name](path)
			got <- err
			if err == nil {
				release()
			}
		}()
		select {
		case err := <-got:
			t.Errorf("%s did not wait: %v", name, err)
		case <-time.After(50 * time.Millisecond):
			held.Release()
			if err := <-got; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Who must write down that something ended early cannot wait, but needs not either.
func TestWaitWithAnEndedContext(t *testing.T) {
	path := lockPath(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 50 {
		must[*lock.Held](t)(new(lock.Table).Wait(ctx, path)).Release()
		must[*lock.Guard](t)(new(lock.Table).WaitGuard(ctx, path)).Release()
	}
	held := must[*lock.Held](t)(lock.Try(path))
	defer held.Release()
	if _, err := new(lock.Table).Wait(ctx, path); !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Wait: %v", err)
	}
}

func TestKillReleases(t *testing.T) {
	for _, role := range []string{"hold", "guard"} {
		path := lockPath(t)
		holder := start(t, role, path)
		holder.line(t)
		if _, err := lock.Try(path); !errors.Is(err, lock.ErrBusy) {
			t.Fatalf("%s in another process: %v", role, err)
		}
		if lock.Free(path) {
			t.Errorf("%s: free while another process holds it", role)
		}
		holder.kill(t)
		eventually(t, "free after kill -9", func() bool { return lock.Free(path) })
		must[*lock.Held](t)(lock.Try(path)).Release()
	}
}

func TestFree(t *testing.T) {
	path := lockPath(t)
	if !lock.Free(path) {
		t.Error("a file that does not exist is not free")
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("asking made something: %v", err)
	}
	guard := must[*lock.Guard](t)(lock.TryGuard(path))
	if lock.Free(path) {
		t.Error("free while it is held here")
	}
	guard.Release()
	if !lock.Free(path) {
		t.Error("not free after Release")
	}
	if dir := filepath.Dir(path); lock.Free(dir) {
		t.Error("what cannot be opened counts as free")
	}
}

// Concurrent callers of Free must not take each other for a holder, nor be taken for one.
func TestAskingIsNotHolding(t *testing.T) {
	path := lockPath(t)
	must[*lock.Held](t)(lock.Try(path)).Release()
	var all sync.WaitGroup
	var busy atomic.Int32
	for range 4 {
		all.Go(func() {
			for range 500 {
				if !lock.Free(path) {
					busy.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := busy.Load(); n > 0 {
		t.Errorf("%d of 2000 who asked took another for a holder", n)
	}
	done := make(chan struct{})
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(5 * time.Microsecond):
					lock.Free(path)
				}
			}
		})
	}
	misses := 0 // a single try misses hundreds
	for range 5000 {
		if guard, err := lock.TryGuard(path); err == nil {
			guard.Release()
		} else {
			misses++
		}
	}
	close(done)
	all.Wait()
	if misses > 0 {
		t.Errorf("%d of 5000 who wanted the lock took one who asked for a holder", misses)
	}
}

// TestSuspendedInFree: who only asks and is suspended by a busy machine is waited for, but not for ever.
func TestSuspendedInFree(t *testing.T) {
	path := lockPath(t)
	must[*lock.Held](t)(lock.Try(path)).Release()
	asks := must[*os.File](t)(os.Open(path))
	defer func() { _ = asks.Close() }()
	if err := syscall.Flock(int(asks.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if held, err := lock.Try(path); !errors.Is(err, lock.ErrBusy) {
			t.Error("taken from a process that is stopped:", held, err)
		}
		time.AfterFunc(time.Second, func() { _ = syscall.Flock(int(asks.Fd()), syscall.LOCK_UN) })
		must[*lock.Guard](t)(lock.TryGuard(path)).Release()
	})
}

func TestFailed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{
		filepath.Join(file, "x.lock"):                "not a directory",
		filepath.Join(file, "locks", "x.lock"):       "not a directory",
		filepath.Join(dir, "folder"):                 "is a directory",
		filepath.Join(dir, strings.Repeat("x", 300)): "file name too long",
	} {
		for name, take := range takers() {
			_, err := take(path)
			var failed *lock.Failed
			if !errors.As(err, &failed) || failed.Path != path || errors.Is(err, lock.ErrBusy) {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if want := path + ": cannot lock: " + reason; err.Error() != want {
				t.Errorf("%s: %q, want %q", name, err, want)
			}
		}
		if lock.Free(path) && reason != "file name too long" {
			t.Errorf("%s counts as free", path)
		}
	}
}

func TestPermissions(t *testing.T) {
	for name, take := range takers() {
		path := lockPath(t)
		release, err := take(path)
		if err != nil {
			t.Fatal(err)
		}
		release()
		for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info := must[fs.FileInfo](t)(os.Stat(p)); info.Mode().Perm() != want {
				t.Errorf("%s: %s is %v", name, p, info.Mode())
			}
		}
	}
}

// descriptors counts what this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		testkit.Missing(t, "no /proc: mount -t proc proc /proc, on Linux: %v", err)
	}
	return len(open)
}

func TestNothingStaysOpen(t *testing.T) {
	path := lockPath(t)
	held := must[*lock.Held](t)(lock.Try(path))
	before := descriptors(t)
	for _, name := range []string{"Try", "TryGuard"} {
		for range 20 {
			if _, err := takers()[name](path); err == nil {
				t.Fatal("taken twice")
			}
			lock.Free(path)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors open, before it were %d", after, before)
	}
	held.Release()
	for _, take := range takers() {
		for range 20 {
			release, err := take(path)
			if err != nil {
				t.Fatal(err)
			}
			release()
			lock.Free(path)
		}
	}
	if after := descriptors(t); after >= before {
		t.Errorf("%d descriptors open after everything was released, while holding it were %d", after, before)
	}
}
