// Package lock takes flock(2) locks: at once, or with a bounded wait in the queue of a Table. Each lock has a file of its own
// that is never renamed and that only the holder of a Guard may delete. (A transcript is its own lock file, and may be deleted
// while other processes wait for it.) The kernel releases a lock when its last holder dies. A Held is for short work on a data
// file; a Guard lasts for a whole run and can be handed to a child process, which then keeps it even if this process is killed.
package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// ErrBusy is the error of a lock that another process holds.
var ErrBusy = errors.New("locked by another process")

// Failed is the error of a lock that could not be taken for another reason than ErrBusy: no permission, a read-only or
// full disk, a file system without locks. The work that needs the lock must not proceed.
type Failed struct {
	Path string
	Err  error
}

func (e *Failed) Error() string { return e.Path + ": cannot lock: " + e.Err.Error() }

func (e *Failed) Unwrap() error { return e.Err }

// Ext is the extension of lock files.
const Ext = ".lock"

// Held is a lock that this process holds until Release.
type Held struct{ l locker }

// Release releases the lock; a second call does nothing.
func (h *Held) Release() {
	if h != nil && h.l != nil {
		_ = h.l.Unlock()
		h.l = nil
	}
}

// Try takes the lock at path without waiting; the error wraps ErrBusy if it is taken. A missing file is created with
// its directory.
func Try(path string) (*Held, error) {
	k := key{path: path}
	return held(k.take(k.try))
}

// Free reports whether the lock at path is free. A missing file is free; one that cannot be opened is not. Free tests
// with a shared lock, so that concurrent callers do not take each other for a holder.
func Free(path string) bool {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return true
	}
	l := flock.New(path, flock.SetFlag(os.O_RDWR|syscall.O_NOFOLLOW))
	free, err := l.TryRLock()
	_ = l.Unlock()
	return free && err == nil
}

func held(l locker, err error) (*Held, error) {
	if err != nil {
		return nil, err
	}
	return &Held{l}, nil
}

// locker is one open lock file: a *flock.Flock, or the descriptor of a Guard.
type locker interface {
	TryLock() (bool, error)
	Lock() error
	Unlock() error
	Stat() (os.FileInfo, error)
}

// key identifies a lock and its kind, Held or Guard.
type key struct {
	path  string
	guard bool
}

// take opens the lock file and locks it. If the file was deleted before it was locked, take opens the new one.
func (k key) take(lock func(locker) error) (locker, error) {
	for {
		if l, err := k.once(lock); !errors.Is(err, errDeleted) {
			return l, err
		}
	}
}

// errDeleted is the error of a lock file that Delete removed before it was locked.
var errDeleted = errors.New("the lock file was deleted")

func (k key) once(lock func(locker) error) (locker, error) {
	l, err := k.open()
	if err != nil {
		return nil, k.failed(err)
	}
	switch err = lock(l); {
	case err == nil && !k.deleted(l):
		return l, nil
	case err == nil:
		err = errDeleted
	case errors.Is(err, ErrBusy):
		err = fmt.Errorf("%s: %w", k.path, err)
	default:
		err = k.failed(err)
	}
	_ = l.Unlock()
	return nil, err
}

// open opens the lock file for reading and writing, because an emulated flock (NFS) needs a writable descriptor. It
// does not follow a symbolic link.
func (k key) open() (locker, error) {
	const flags = os.O_CREATE | os.O_RDWR | syscall.O_NOFOLLOW
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return nil, err
	}
	if !k.guard {
		return flock.New(k.path, flock.SetFlag(flags), flock.SetPermissions(0o600)), nil
	}
	f, err := os.OpenFile(k.path, flags, 0o600)
	return descriptor{f}, err
}

// deleted reports whether l is a lock file that Delete has removed: another process may hold a new one at its path.
// Locked files that are not lock files, such as transcripts, are never recreated.
func (k key) deleted(l locker) bool {
	if filepath.Ext(k.path) != Ext {
		return false
	}
	ours, err := l.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(k.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, now)
}

func (k key) failed(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &Failed{k.path, err}
}

// try tests a taken lock three times, 2 ms apart. It does not count those at which only callers of Free have the lock: a job must not be
// skipped for them, and a busy machine may suspend one for long. A stopped one has it for ever, so that five seconds are the most.
func (k key) try(l locker) error {
	const pause = 2 * time.Millisecond
	for looks, waited := 0, time.Duration(0); ; waited += pause {
		err := tryOnce(l)
		if err == nil || !errors.Is(err, ErrBusy) {
			return err
		}
		if !Free(k.path) {
			looks++
		}
		if looks == 3 || waited > 5*time.Second {
			return err
		}
		time.Sleep(pause)
	}
}

func tryOnce(l locker) error {
	for {
		ok, err := l.TryLock()
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || ok:
			return err
		default:
			return ErrBusy
		}
	}
}

// block waits in the kernel instead of polling, because a polling waiter starves: the process that released the lock
// last takes it again (12 s at worst against 0.4 s, 16 processes).
func block(l locker) error {
	err := l.Lock()
	for errors.Is(err, syscall.EINTR) {
		err = l.Lock()
	}
	return err
}
