package outbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

const (
	entryExt = ".jsonl"
	draftExt = ".new" // with a dot in front; a message that has no entry yet
)

func (p Post) path(id string) string { return filepath.Join(p.Home.Outbox(), id+entryExt) }

func (p Post) draft(id string) string { return filepath.Join(p.Home.Outbox(), "."+id+draftExt) }

// putWait bounds the wait for a draft. Nobody but finishDrafts takes one that is not its own, for milliseconds.
const putWait = 10 * time.Second

// put makes the entry of m, which the caller then holds. The lock is taken on the draft, because an entry that can be seen
// can be sent by another process.
func (p Post) put(ctx context.Context, m Message) (*lock.Guard, error) {
	if !isMessageID(m.ID) {
		return nil, fmt.Errorf("message %q: %w", m.ID, errID)
	}
	if err := store.MkdirOwn(p.Home.Outbox()); err != nil {
		return nil, err
	}
	draft := p.draft(m.ID)
	held, err := p.fresh(ctx, draft)
	if err != nil {
		return nil, err
	}
	err = store.AppendJSON(draft, m, store.Synced)
	if err == nil {
		err = enter(draft, p.path(m.ID))
	}
	removed := store.Remove(draft) // it syncs the directory: only now does the entry survive a power cut
	if err == nil {
		err = removed
	}
	if err != nil {
		held.Release()
		return nil, err
	}
	return held, nil
}

// fresh takes a new, empty draft, even if ctx has ended: a message must not be lost.
func (p Post) fresh(ctx context.Context, draft string) (*lock.Guard, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putWait)
	defer cancel()
	for {
		held, err := p.Disk.Locks.WaitGuard(ctx, draft)
		if errors.Is(err, lock.ErrBusy) {
			return nil, fmt.Errorf("%s: %w", draft, errTaken)
		}
		if err != nil {
			return nil, notWritten(draft, err)
		}
		size, named := identify(held, draft)
		if named && size == 0 {
			return held, nil
		}
		held.Release()
		if named { // a crash left it; the next Flush makes it an entry
			return nil, fmt.Errorf("%s: %w", draft, errTaken)
		}
	}
}

// enter gives a draft its entry's name, without ever taking that of another.
func enter(draft, path string) error {
	err := os.Link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, errTaken)
	}
	if err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// finishDrafts does what a sender that was killed while it made an entry had left to do.
func (p Post) finishDrafts() error {
	names, err := p.list()
	errs := []error{err}
	for _, name := range names {
		id, ok := strings.CutSuffix(name, draftExt)
		id, dot := strings.CutPrefix(id, ".")
		if ok && dot && isMessageID(id) {
			errs = append(errs, p.finishDraft(id))
		}
	}
	return errors.Join(errs...)
}

func (p Post) finishDraft(id string) error {
	draft := p.draft(id)
	held, err := claim(draft)
	if held == nil {
		return err
	}
	defer held.Release()
	if err := enter(draft, p.path(id)); err != nil && !errors.Is(err, errTaken) {
		return err
	}
	return store.Remove(draft)
}

// claim takes the file at path for this process. Without an error, nil means that the file is gone or another process is
// at it. An empty file is no message: it is what TryGuard makes of a file that has just gone, and is removed.
func claim(path string) (*lock.Guard, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	held, err := lock.TryGuard(path)
	if errors.Is(err, lock.ErrBusy) {
		return nil, nil
	}
	if err != nil {
		return nil, notWritten(path, err)
	}
	size, named := identify(held, path)
	if named && size > 0 {
		return held, nil
	}
	defer held.Release()
	if named {
		return nil, store.Remove(path)
	}
	return nil, nil
}

// identify says how long the locked file is and whether path still leads to it: it may have been removed between our opening
// and our locking it, and then the lock says nothing about what is at path now.
func identify(held *lock.Guard, path string) (size int64, named bool) {
	ours, err := held.File().Stat()
	if err != nil {
		return 0, false
	}
	now, err := os.Lstat(path)
	return ours.Size(), err == nil && os.SameFile(ours, now)
}

// list names what is in the outbox; a directory that is not there is empty.
func (p Post) list() ([]string, error) {
	entries, err := os.ReadDir(p.Home.Outbox())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// isMessageID is [A-Za-z0-9._-]{1,128} without a leading dot: that is for drafts and temporary files.
func isMessageID(id string) bool {
	return id != "" && len(id) <= 128 && id[0] != '.' && plaintext.IsWord(id, "._-")
}

// notWritten gives a lock that could not be taken the form of every other change that did not reach the disk.
func notWritten(path string, err error) error {
	if failed, ok := errors.AsType[*lock.Failed](err); ok {
		err = failed.Err
	}
	return &store.NotWritten{Path: path, Err: err}
}
