package outbox

import (
	"cmp"
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

// putWait bounds the wait for a draft. Only finishDrafts locks another process's draft, for milliseconds.
const putWait = 10 * time.Second

// put creates the entry of m, locked by the caller. The lock is taken on the draft, because any process can send an
// entry once it is visible.
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
	err = store.AppendJSON(draft, store.Synced, m)
	if err == nil {
		err = enter(draft, p.path(m.ID))
	}
	err = cmp.Or(err, store.Remove(draft)) // it syncs the directory: the entry survives a power cut from here on
	if err != nil {
		held.Release()
		return nil, err
	}
	return held, nil
}

// fresh creates an empty draft, even if ctx has ended, so that a message is not lost.
func (p Post) fresh(ctx context.Context, draft string) (*lock.Guard, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putWait)
	defer cancel()
	for {
		held, err := p.Disk.Locks.WaitGuard(ctx, draft)
		if errors.Is(err, lock.ErrBusy) {
			return nil, fmt.Errorf("%s: %w", draft, ErrTaken)
		}
		if err != nil {
			return nil, notWritten(draft, err)
		}
		size, named, err := identify(held, draft)
		if named && size == 0 {
			return held, nil
		}
		held.Release()
		if err != nil {
			return nil, notWritten(draft, err)
		}
		if named { // left by a crash; the next Flush makes it an entry
			return nil, fmt.Errorf("%s: %w", draft, ErrTaken)
		}
	}
}

// enter renames a draft to its entry, and never replaces another entry.
func enter(draft, path string) error {
	err := os.Link(draft, path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, ErrTaken)
	}
	if err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// finishDrafts completes the drafts of senders that were killed while they created an entry.
func (p Post) finishDrafts() error {
	ids, err := p.ids(".", draftExt)
	errs := []error{err}
	for _, id := range ids {
		errs = append(errs, p.finishDraft(id))
	}
	return errors.Join(errs...)
}

func (p Post) finishDraft(id string) error {
	draft := p.draft(id)
	held, err := claim(draft, lock.TryGuard)
	if held == nil {
		return err
	}
	defer held.Release()
	if err := enter(draft, p.path(id)); err != nil && !errors.Is(err, ErrTaken) {
		return err
	}
	return store.Remove(draft)
}

// claim locks the file at path for this process by take. Without an error, nil means that the file is gone or locked by another
// process. An empty file is not a message: TryGuard creates it if the file has just been removed. claim removes it.
func claim(path string, take func(path string) (*lock.Guard, error)) (*lock.Guard, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	held, err := take(path)
	if errors.Is(err, lock.ErrBusy) || errors.Is(err, context.Canceled) { // the caller may wait for it no longer
		return nil, nil
	}
	if err != nil {
		return nil, notWritten(path, err)
	}
	size, named, err := identify(held, path)
	if named && size > 0 {
		return held, nil
	}
	defer held.Release()
	switch {
	case err != nil:
		return nil, notWritten(path, err)
	case named:
		return nil, store.Remove(path)
	}
	return nil, nil
}

// identify returns the size of the locked file and reports whether path still leads to it. The file may have been
// removed between opening and locking it; then the lock does not cover the file that is at path now.
func identify(held *lock.Guard, path string) (size int64, named bool, err error) {
	ours, err := held.File().Stat()
	if err != nil {
		return 0, false, err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ours.Size(), false, nil
	}
	return ours.Size(), err == nil && os.SameFile(ours, now), err
}

// ids returns the message ids between a beginning and an end of file names in the outbox; a missing directory is empty.
func (p Post) ids(beginning, end string) (ids []string, err error) {
	entries, err := store.List(p.Home.Outbox())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		id, begins := strings.CutPrefix(e.Name(), beginning)
		id, ends := strings.CutSuffix(id, end)
		if begins && ends && isMessageID(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// isMessageID reports whether id is [A-Za-z0-9._-]{1,128} without a leading dot, which is reserved for drafts and
// temporary files.
func isMessageID(id string) bool {
	return id != "" && len(id) <= 128 && id[0] != '.' && plaintext.IsWord(id, "._-")
}

// notWritten converts the error of a lock that could not be taken into a *store.NotWritten, as for every other change
// that did not reach the disk.
func notWritten(path string, err error) error {
	if failed, ok := errors.AsType[*lock.Failed](err); ok {
		err = failed.Err
	}
	return &store.NotWritten{Path: path, Err: err}
}
