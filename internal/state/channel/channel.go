// Package channel keeps the sessions of channels: conversations other than the owner's main one, such as those that a bridge to a
// chat service has with its users. A session is one file, state/channels/{channel}_{chat_id}.json, with the newest 50 messages. The
// first message creates it; it is removed 30 days after the last access.
//
// The lock of the session's Key is held from Open to End of a turn, in which the session is saved when the message arrives, every
// 30 seconds, when the context ends, and at the end. A turn reads the file again if it has changed on disk, so that any number of
// processes may serve one channel.
//
// A process that serves channels for a long time shares one Cache: it calls Load once at its start and reports the result, runs Persist
// in a goroutine until it ends, and passes each message to the runner, which opens a turn, or to Open itself:
//
//	loaded, err := book.Load(ctx)
//	go book.Persist(ctx)
//	…
//	turn, err := book.Open(name) // under the lock of name.Key()
//	turn.Begin(ctx, "Hello!", now)
//	turn.Answer("Hello! How can I help you?")
//	err = turn.End()
//
// Persist saves what a turn could not save. A process without it keeps such messages for its next turn of the session.
package channel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book holds the sessions of a data directory.
type Book struct {
	Home  paths.Dir
	Disk  store.Disk
	Cache *Cache // of the process; nil: each turn reads its file
}

// life is how long a session is kept after the last access.
const life = 30 * 24 * time.Hour

// Damaged is the error of a file that is not a session.
type Damaged struct {
	Path string
	Err  error
}

func (e *Damaged) Error() string { return e.Path + ": not a session: " + e.Err.Error() }

func (e *Damaged) Unwrap() error { return e.Err }

// Read returns a session as it is on disk; fs.ErrNotExist or a *Damaged if there is none.
func (b Book) Read(n Name) (Session, error) {
	s, _, err := b.read(n)
	return s, err
}

// read reads a file unless the cache has its present content.
func (b Book) read(n Name) (s Session, info fs.FileInfo, err error) {
	path := b.Home.Channel(n.String())
	f, err := store.Open(path, os.O_RDONLY)
	if err != nil {
		return s, nil, err
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return s, nil, err
	}
	if s, ok := b.Cache.get(n, info); ok {
		return s, info, nil
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead) // one read, and one for the end
	if _, err = data.ReadFrom(f); err != nil {
		return s, nil, err
	}
	if s, err = decode(n, data.Bytes()); err != nil {
		return Session{}, info, &Damaged{path, err}
	}
	b.Cache.put(n, s, info)
	return s, info, nil
}

// Names lists the sessions on disk, sorted. Files with other names are omitted.
func (b Book) Names() ([]Name, error) {
	entries, err := store.List(b.Home.Channels())
	var names []Name
	for _, e := range entries {
		text, isJSON := strings.CutSuffix(e.Name(), ".json")
		if n, err := Parse(text); err == nil && isJSON {
			names = append(names, n)
		}
	}
	return names, err
}

// setAside renames a damaged file to .corrupted, or .corrupted-2 and so on, and warns. The session's lock is held.
func (b Book) setAside(damaged *Damaged) error {
	aside := damaged.Path + ".corrupted"
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); err != nil {
			break
		}
		aside = fmt.Sprintf("%s.corrupted-%d", damaged.Path, i)
	}
	if err := store.Rename(damaged.Path, aside); err != nil {
		return err
	}
	b.Disk.Warn(fmt.Sprintf("%v: kept as %s", damaged, aside))
	return nil
}

// Remove deletes a session. The error is fs.ErrNotExist if there is none, and wraps lock.ErrBusy during a turn.
func (b Book) Remove(n Name) error {
	_, err := b.removeIf(n, func(Session) bool { return true })
	return err
}

// Expire deletes the sessions whose life has ended by now, except those in a turn, and returns how many.
func (b Book) Expire(now time.Time) (removed int, err error) {
	names, err := b.Names()
	old := func(s Session) bool { return s.LastAccessed.Before(now.Add(-life)) }
	for _, n := range names {
		if s, readErr := b.Read(n); readErr != nil || !old(s) {
			continue // a damaged file is left to the next turn
		}
		gone, removeErr := b.removeIf(n, old)
		if gone {
			removed++
		}
		if !errors.Is(removeErr, lock.ErrBusy) && !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
	}
	return removed, err
}

// removeIf deletes a session, and its lock file, if a condition holds under the lock. A damaged file counts as an empty session.
func (b Book) removeIf(n Name, right func(Session) bool) (removed bool, err error) {
	guard, err := lock.TryGuard(b.Home.ConversationLock(n.Key()))
	if err != nil {
		return false, err
	}
	s, err := b.Read(n)
	if damaged := (*Damaged)(nil); errors.As(err, &damaged) {
		err = nil
	}
	if err == nil && right(s) {
		removed, err = true, store.Remove(b.Home.Channel(n.String()))
	}
	if errors.Is(err, fs.ErrNotExist) { // there is nothing to lock
		return false, errors.Join(err, guard.Delete())
	}
	if err != nil || !removed {
		guard.Release()
		return false, err
	}
	b.Cache.forget(n)
	return true, guard.Delete()
}

// loaded is what Load found.
type loaded struct {
	Sessions int
	Damaged  int // files that were set aside
}

func (l loaded) String() string {
	text := plaintext.Count(l.Sessions, "channel session") + " loaded"
	if l.Damaged > 0 {
		text += ", " + plaintext.Count(l.Damaged, "damaged file") + " set aside"
	}
	return text
}

// Load reads all sessions into the cache and sets damaged files aside, except those of sessions in a turn.
func (b Book) Load(ctx context.Context) (l loaded, err error) {
	names, err := b.Names()
	if err != nil {
		return l, err
	}
	for i, readErr := range b.readEach(ctx, names) {
		damaged := (*Damaged)(nil)
		switch {
		case readErr == nil:
			l.Sessions++
		case errors.As(readErr, &damaged):
			aside, asideErr := b.asideUnderLock(names[i])
			if aside {
				l.Damaged++
			}
			err = errors.Join(err, asideErr)
		case !errors.Is(readErr, fs.ErrNotExist):
			err = errors.Join(err, readErr)
		}
	}
	return l, err
}

// asideUnderLock sets a file aside if it is still damaged under its lock.
func (b Book) asideUnderLock(n Name) (bool, error) {
	guard, err := lock.TryGuard(b.Home.ConversationLock(n.Key()))
	if errors.Is(err, lock.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer guard.Release()
	_, err = b.Read(n)
	if damaged := (*Damaged)(nil); errors.As(err, &damaged) {
		return true, b.setAside(damaged)
	}
	return false, nil
}
