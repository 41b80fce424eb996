package lock

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Guard is a lock for as long as a run lasts, a job's or a session's. Unlike Held it gives out its descriptor, which
// gofrs/flock keeps to itself: an engine that inherits it keeps the guard closed after our own death.
type Guard struct {
	Held
	file *os.File
}

// Release gives the guard back, also when a child has inherited it; a second call does nothing.
func (g *Guard) Release() {
	if g != nil {
		g.Held.Release()
	}
}

// TryGuard takes the guard at path without waiting; the error wraps ErrBusy if it is taken.
func TryGuard(path string) (*Guard, error) {
	return guard(path, func(d descriptor) (*Held, error) { return try(path, d) })
}

// WaitGuard takes the guard at path, waiting until ctx ends; then the error wraps ErrBusy.
func WaitGuard(ctx context.Context, path string) (*Guard, error) {
	return guard(path, func(d descriptor) (*Held, error) { return wait(ctx, path, d) })
}

// guard takes the guard at path; a lock file that was deleted before it was locked is no lock, and is opened anew.
func guard(path string, take func(descriptor) (*Held, error)) (*Guard, error) {
	for {
		g, err := guardOnce(path, take)
		if err != nil || !g.deleted() {
			return g, err
		}
		g.Release()
	}
}

func guardOnce(path string, take func(descriptor) (*Held, error)) (*Guard, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, failed(path, err)
	}
	f, err := os.OpenFile(path, openFlags, 0o600)
	if err != nil {
		return nil, failed(path, err)
	}
	held, err := take(descriptor{f})
	if err != nil {
		return nil, err
	}
	return &Guard{*held, f}, nil
}

// deleted reports whether the file is a lock file that Delete has removed: another process may hold a new one at its path. Files
// that are locked and are no lock files, such as transcripts, are never made anew.
func (g *Guard) deleted() bool {
	if filepath.Ext(g.file.Name()) != Ext {
		return false
	}
	ours, err := g.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(g.file.Name())
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(ours, now)
}

// Delete removes the lock file and releases the guard. Whoever waits for it takes a new file.
func (g *Guard) Delete() error {
	defer g.Release()
	if err := os.Remove(g.file.Name()); err != nil {
		return failed(g.file.Name(), err)
	}
	return nil
}

// File is the locked descriptor, to be passed to a child (exec.Cmd.ExtraFiles). It belongs to the guard and must not be
// closed by the caller.
func (g *Guard) File() *os.File { return g.file }

// Note replaces the content of the lock file: information for people and for the next holder, not the lock itself. The
// new text is there before the rest of the old one goes, so that no crash leaves an empty note.
func (g *Guard) Note(text string) error {
	if _, err := g.file.WriteAt([]byte(text), 0); err != nil {
		return failed(g.file.Name(), err)
	}
	if err := g.file.Truncate(int64(len(text))); err != nil {
		return failed(g.file.Name(), err)
	}
	return nil
}

// LastNote is what the previous holder noted, or "".
func (g *Guard) LastNote() string { return ReadNote(g.file.Name()) }

// ReadNote is what the latest holder of the guard at path noted, or "". It needs no lock.
func ReadNote(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe would never end
		return ""
	}
	note, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return string(note)
}

// descriptor is an open file as a locker.
type descriptor struct{ f *os.File }

func (d descriptor) TryLock() (bool, error) {
	err := d.flock(syscall.LOCK_EX | syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func (d descriptor) Lock() error { return d.flock(syscall.LOCK_EX) }

func (d descriptor) Unlock() error {
	return errors.Join(d.flock(syscall.LOCK_UN), d.f.Close())
}

// flock goes through SyscallConn, because Fd would put the file into blocking mode.
func (d descriptor) flock(how int) error {
	conn, err := d.f.SyscallConn()
	if err != nil {
		return err
	}
	var flockErr error
	if err := conn.Control(func(fd uintptr) { flockErr = syscall.Flock(int(fd), how) }); err != nil {
		return err
	}
	return flockErr
}
