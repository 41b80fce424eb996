package runlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// The file of a run in progress, running in its directory, is the lock that its process holds, and says who may write for the run:
//
//	20261123T195500.000Z-0a1b2c 1795463700000
//	stop stopped by ollim stop
//
// The first line has the run's id and its generation. Whoever closes the record of a run whose lock is free raises the generation. So a
// process that lost its lock without noticing, because its machine was stopped for longer than the lease of a network file system, finds
// that the run is not its own any more. A part of a run removes the file at its end, so the generation of the next part begins with the time
// in milliseconds: it is never one that the run has had. The second line, if there is one, asks the run to end; it may be there before
// the run begins, with the generation 0. Both are written in place, because another file would be another lock, and read anew each time,
// which a network file system answers with what is true now.

// ErrClosed is the error of a process that carries out a run which another process has closed.
var ErrClosed = errors.New("another process closed the run, because its lock was free or its file changed")

// Hold is the hold of a process on the run that it carries out. A nil *Hold is that of a process that only adds to a run.
type Hold struct {
	guard      *lock.Guard
	id         string
	generation int64
	left       bool // the file may be another process's now
}

// Hold takes the lock of a run, which need not have a record yet. Its holder, and an engine that inherits it, mark the run as alive for
// every process, in any PID namespace and on any machine.
func (b Book) Hold(id string) (*Hold, error) {
	if err := store.MkdirAs(b.Home.Run(id), store.Buffered); err != nil {
		return nil, err
	}
	guard, err := lock.TryGuard(b.Home.RunLock(id))
	if err != nil {
		return nil, err
	}
	last, _ := parseNote(guard.LastNote())
	h := &Hold{guard: guard, id: id, generation: max(last.generation+1, b.Disk.Now().UnixMilli())}
	now := note{id: id, generation: h.generation}
	if last.id == id && last.generation == 0 && !b.recorded(id) {
		now.stop = last.stop // it was asked to end before it began
	}
	if err := guard.Note(now.String()); err != nil {
		guard.Release()
		return nil, err
	}
	return h, nil
}

// recorded reports whether a run has a record.
func (b Book) recorded(id string) bool {
	_, err := os.Lstat(b.Home.Run(id, "run.json"))
	return err == nil
}

// Lock returns the locked file, which an engine inherits.
func (h *Hold) Lock() *os.File { return h.guard.File() }

// Look returns why the run was asked to end, "" if it was not. The error is ErrClosed if the run is not this process's any more, also if that
// cannot be read.
func (h *Hold) Look() (stop string, err error) {
	if h == nil {
		return "", nil
	}
	now, err := parseNote(lock.ReadNote(h.guard.File().Name()))
	if err != nil || now.id != h.id || now.generation != h.generation {
		return "", ErrClosed
	}
	return now.stop, nil
}

// Reach waits until the server of the data directory answers. While that keeps a Look waiting, no other process can take a lock either.
func (h *Hold) Reach() error {
	if h == nil {
		return nil
	}
	return h.guard.Reach()
}

// Check returns ErrClosed if the run is not this process's any more.
func (h *Hold) Check() error {
	_, err := h.Look()
	return err
}

// Leave ends the hold on a run that has ended, and removes its file, and its directory if there was no run. A second call does nothing.
func (h *Hold) Leave() {
	if h == nil || h.left {
		return
	}
	h.left = true
	if h.Check() != nil { // the file is another process's
		h.guard.Release()
		return
	}
	_ = h.guard.Delete()                               // a failure does no harm: a file that nobody locks means the same as none
	_ = os.Remove(filepath.Dir(h.guard.File().Name())) // fails if there is a record
}

// note is the content of a run's file.
type note struct {
	id         string
	generation int64
	stop       string // why the run is asked to end; "": it is not
}

func (n note) String() string {
	text := fmt.Sprintf("%s %013d\n", n.id, n.generation)
	if n.stop != "" {
		text += "stop " + strings.ReplaceAll(n.stop, "\n", " ") + "\n"
	}
	return text
}

var errNote = errors.New("not the file of a run in progress")

func parseNote(text string) (n note, err error) {
	first, rest, whole := strings.Cut(text, "\n")
	if _, err := fmt.Sscanf(first, "%s %d", &n.id, &n.generation); err != nil || !whole {
		return note{}, errNote
	}
	if why, asked := strings.CutPrefix(rest, "stop "); asked {
		n.stop = strings.TrimSuffix(why, "\n")
	}
	return n, nil
}

// amend changes the file of a run in place. A run without one is not in progress: what is then written counts as if its process had died.
func (b Book) amend(id string, change func(*note)) error {
	path := b.Home.RunLock(id)
	n, err := parseNote(lock.ReadNote(path))
	if err != nil {
		n = note{id: id}
	}
	change(&n)
	f, err := store.Open(path, os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return err
	}
	if _, err = f.WriteString(n.String()); err != nil {
		err = &store.NotWritten{Path: path, Err: err}
	}
	return errors.Join(err, f.Close())
}

// take makes the run that of the calling process, which closes it: the process that carried it out may not know that its lock is free. The
// caller holds the run's own lock.
func (b Book) take(id string) error {
	if _, err := os.Lstat(b.Home.RunLock(id)); errors.Is(err, fs.ErrNotExist) {
		return nil // nobody carries it out
	}
	return b.amend(id, func(n *note) { n.generation++ })
}

// AskStop requests that a run ends, in whichever process it runs. why becomes the reason in the run's record.
func (b Book) AskStop(id, why string) error {
	return b.locked(context.Background(), id, func() error {
		return b.amend(id, func(n *note) { n.stop = cmp.Or(n.stop, why, "stopped by ollim stop") })
	})
}

// StopReason returns why a run was requested to end, "" if it was not.
func (b Book) StopReason(id string) string {
	n, _ := parseNote(lock.ReadNote(b.Home.RunLock(id)))
	return n.stop
}
