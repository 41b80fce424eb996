package lock

import (
	"errors"
	"io"
	"math"
	"os"
	"syscall"
)

// Guard is a lock held for a whole run, a job's or a session's. Unlike Held it has a File, which gofrs/flock does not
// expose: an engine that inherits it keeps the lock after the death of this process.
type Guard struct {
	Held
	file *os.File
}

// Release releases the guard, even if a child has inherited it; a second call does nothing.
func (g *Guard) Release() {
	if g != nil {
		g.Held.Release()
	}
}

// TryGuard takes the guard at path without waiting; the error wraps ErrBusy if it is taken.
func TryGuard(path string) (*Guard, error) {
	k := key{path, true}
	return guard(k.take(k.try))
}

func guard(l locker, err error) (*Guard, error) {
	if err != nil {
		return nil, err
	}
	return &Guard{Held{l}, l.(descriptor).File}, nil
}

// Delete removes the lock file and releases the guard. A waiter creates a new file.
func (g *Guard) Delete() error {
	defer g.Release()
	if err := os.Remove(g.file.Name()); err != nil {
		return key{path: g.file.Name()}.failed(err)
	}
	return nil
}

// File returns the locked descriptor, to be passed to a child (exec.Cmd.ExtraFiles). It belongs to the guard; the
// caller must not close it.
func (g *Guard) File() *os.File { return g.file }

// Reach waits until the server of the file's file system answers, which it does at once unless it is cut off or down.
func (g *Guard) Reach() error { return reach(g.file) }

// Note replaces the content of the lock file, which informs people and the next holder and is not the lock itself. The
// new text is written before the old one is truncated, so that a crash never leaves an empty note. It is on the server of a network file
// system when Note returns.
func (g *Guard) Note(text string) error {
	if _, err := g.file.WriteAt([]byte(text), 0); err != nil {
		return key{path: g.file.Name()}.failed(err)
	}
	err := g.file.Truncate(int64(len(text)))
	if err == nil {
		_, err = g.file.Stat() // an NFS client asks the server for the size, and sends what was written before
	}
	if err != nil {
		return key{path: g.file.Name()}.failed(err)
	}
	return nil
}

// LastNote returns the note of the previous holder, or "".
func (g *Guard) LastNote() string { return content(io.NewSectionReader(g.file, 0, math.MaxInt64)) }

// ReadNote returns the note of the latest holder of the guard at path, or "". It needs no lock. Over NFS the note is read from the server:
// the cache of a machine on which a process holds the guard keeps the note of that process.
func ReadNote(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // reading a pipe would block
		return ""
	}
	if network(f) {
		if text, err := uncached(path); err == nil {
			return text
		}
	}
	return content(f)
}

func content(r io.Reader) string {
	note, err := io.ReadAll(r)
	if err != nil {
		return ""
	}
	return string(note)
}

// descriptor is an open file that implements locker.
type descriptor struct{ *os.File }

func (d descriptor) TryLock() (bool, error) {
	err := d.flock(syscall.LOCK_EX | syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func (d descriptor) Lock() error { return d.flock(syscall.LOCK_EX) }

func (d descriptor) Unlock() error {
	return errors.Join(d.flock(syscall.LOCK_UN), d.Close())
}

// flock uses SyscallConn, because Fd would put the file into blocking mode.
func (d descriptor) flock(how int) error {
	conn, err := d.SyscallConn()
	if err != nil {
		return err
	}
	var flockErr error
	if err := conn.Control(func(fd uintptr) { flockErr = syscall.Flock(int(fd), how) }); err != nil {
		return err
	}
	return flockErr
}
