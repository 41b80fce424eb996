// Package lock takes flock(2) locks: at once, or with a bounded wait. A lock lies in a file of its own that is never
// renamed, and that only the holder of a Guard may delete (a transcript is its own lock file, and may be deleted before a
// waiter gets it). The kernel releases a lock when its last holder dies. Try and Wait are for short work on a data file; a
// Guard lasts for a whole run and can be handed to a child process, which then keeps it even if we are killed.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// ErrBusy says that another process holds the lock.
var ErrBusy = errors.New("locked by another process")

// Failed is a lock that could not be taken for another reason than ErrBusy: no permission, a read-only or full disk, a
// file system without locks. The work that needed it must not go on.
type Failed struct {
	Path string
	Err  error
}

func (e *Failed) Error() string { return e.Path + ": cannot lock: " + e.Err.Error() }

func (e *Failed) Unwrap() error { return e.Err }

// Ext is the extension of lock files.
const Ext = ".lock"

// locker is one open lock file; *flock.Flock is one.
type locker interface {
	TryLock() (bool, error)
	Lock() error
	Unlock() error
}

// Held is a lock that this process holds until Release.
type Held struct{ l locker }

// Release gives the lock back; a second call does nothing.
func (h *Held) Release() {
	if h != nil && h.l != nil {
		_ = h.l.Unlock()
		h.l = nil
	}
}

// Try takes the lock at path without waiting; the error wraps ErrBusy if it is taken. The file and its folder are made if
// missing.
func Try(path string) (*Held, error) {
	l, err := open(path)
	if err != nil {
		return nil, err
	}
	return try(path, l)
}

// Wait takes the lock at path, waiting until ctx ends; then the error wraps ErrBusy. A free lock is taken even if ctx has
// ended before.
func Wait(ctx context.Context, path string) (*Held, error) {
	l, err := open(path)
	if err != nil {
		return nil, err
	}
	return wait(ctx, path, l)
}

// Free says whether nobody holds the lock at path; a file that does not exist is free, one that cannot be opened is not.
// It asks with a shared lock, so that several who ask at once do not take each other for a holder.
func Free(path string) bool {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return true
	}
	l := flock.New(path, flock.SetFlag(os.O_RDWR|syscall.O_NOFOLLOW))
	free, err := l.TryRLock()
	_ = l.Unlock()
	return free && err == nil
}

// openFlags open a lock file for reading and writing, never what a symbolic link leads to.
const openFlags = os.O_CREATE | os.O_RDWR | syscall.O_NOFOLLOW

// open reads and writes, because an emulated flock (NFS) needs a writable descriptor.
func open(path string) (locker, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, failed(path, err)
	}
	return flock.New(path, flock.SetFlag(openFlags), flock.SetPermissions(0o600)), nil
}

// looks and pause: a lock that is taken is looked at again a moment later, because somebody may only have asked whether it
// is Free, which holds it for some microseconds. A job must not be skipped for that.
const (
	looks = 3
	pause = 2 * time.Millisecond
)

func try(path string, l locker) (*Held, error) {
	for look := 1; ; look++ {
		ok, err := l.TryLock()
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			_ = l.Unlock()
			return nil, failed(path, err)
		case ok:
			return &Held{l}, nil
		case look >= looks:
			_ = l.Unlock()
			return nil, fmt.Errorf("%s: %w", path, ErrBusy)
		}
		time.Sleep(pause)
	}
}

// wait blocks in the kernel instead of polling, because a polling waiter starves behind whoever released the lock last
// (12 s at worst against 0.4 s, 16 processes).
func wait(ctx context.Context, path string, l locker) (*Held, error) {
	if ctx.Err() != nil {
		return try(path, l) // nobody is left behind that would still wait
	}
	if ok, err := l.TryLock(); ok && err == nil {
		return &Held{l}, nil
	}
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		for err = l.Lock(); errors.Is(err, syscall.EINTR); {
			err = l.Lock()
		}
	}()
	select {
	case <-done:
		if err != nil {
			_ = l.Unlock()
			return nil, failed(path, err)
		}
		return &Held{l}, nil
	case <-ctx.Done():
		go func() { // the kernel may still give it to us: let it go then
			<-done
			_ = l.Unlock()
		}()
		return nil, fmt.Errorf("%s: %w", path, ErrBusy)
	}
}

func failed(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &Failed{path, err}
}
