// Package changed stores the last value of each key of `ollim changed`, so that a pipeline can find out what is new. A value
// is committed at once or, if a run proposed it, when that run ends ok. After a run that fails the old value is kept, and the
// same change is found again. The keys of the owner and those of each job are different ones.
//
// On disk: state/changed/<key> is the owner's committed value byte for byte, state/changed/@<kind>-<id>/<key> that of a job, and
// state/runs/<run>/changed/<key> a proposed one; all are changed under the lock "changed". Any bytes are a valid value, so no file can be
// corrupt.
package changed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// MaxValue is the maximum size of a value, in bytes.
const MaxValue = 1 << 20

// Errors of this package.
var (
	ErrKey     = errors.New("not a key: want at most 64 letters, digits, '.', '_' and '-', the first a letter or digit")
	ErrTooLong = errors.New("too long: a value has at most 1 MiB")
)

// Book holds the values of one data directory. The error is ErrKey or ErrTooLong; *store.NotWritten, *lock.Failed, or
// lock.ErrBusy after ten seconds, with the values unchanged; or a *fs.PathError for a value that cannot be read.
type Book struct {
	Home paths.Dir
	Disk store.Disk
}

// Compare reports whether value differs from the committed one of key, and returns the differing lines: "- " for
// removed, "+ " for added ones. The first value of a key differs, and all its lines are added. One newline at the end
// makes no difference.
func (b Book) Compare(key string, value []byte) (diff string, changed bool, err error) {
	return b.compare(key, value, b.path(key))
}

// CompareOf is Compare for a key of a job. If taken is set and the job has no value of the key yet, the owner's value is used: the job then
// has the value from before jobs had keys of their own.
func (b Book) CompareOf(j Job, key string, value []byte, taken bool) (diff string, changed bool, err error) {
	path := b.of(j, key)
	if taken && plaintext.IsID(key) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			path = b.path(key)
		}
	}
	return b.compare(key, value, path)
}

func (b Book) compare(key string, value []byte, path string) (diff string, changed bool, err error) {
	if err := check(key, value); err != nil {
		return "", false, err
	}
	old, err := store.Read(path)
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return "", false, err
	}
	before, after := lines(old), lines(value)
	if !first && bytes.Equal(before, after) {
		return "", false, nil
	}
	return plaintext.Diff(before, after), true, nil
}

// Commit commits value for key.
func (b Book) Commit(ctx context.Context, key string, value []byte) error {
	return b.write(ctx, b.path(key), key, value, store.Synced)
}

// Propose stores value in the record of a run, for CommitRun. A second proposal of the same key replaces the first.
func (b Book) Propose(ctx context.Context, run, key string, value []byte) error {
	return b.write(ctx, filepath.Join(b.proposals(run), key), key, value, store.Buffered) // CommitRun makes it durable
}

// CommitRun commits the proposals of a run of a job, if any. Each proposal is removed once committed, so that a second call, even after a
// failed one, never restores an old value.
func (b Book) CommitRun(ctx context.Context, run string, j Job) error {
	entries, err := store.List(b.proposals(run))
	if err != nil || len(entries) == 0 {
		return err
	}
	return b.Disk.Locked(ctx, b.Home.Lock("changed"), func() error {
		for _, entry := range entries {
			if !plaintext.IsID(entry.Name()) {
				continue // left by a proposal that was killed while it was written
			}
			if err := store.MkdirOwn(b.of(j, "")); err != nil {
				return err
			}
			if err := b.commit(filepath.Join(b.proposals(run), entry.Name()), b.of(j, entry.Name())); err != nil {
				return err
			}
		}
		return nil
	})
}

// Job is the owner of keys: a job, or something else that has runs, such as a conversation.
type Job struct{ Kind, ID string }

// marker begins the names of the directories of jobs. No key begins with it.
const marker = "@"

// name returns the name of a job's directory. No kind has a hyphen.
func (j Job) name() string { return marker + url.PathEscape(j.Kind+"-"+j.ID) }

// Hand moves the values of a job to the job that continues it, which has none.
func (b Book) Hand(ctx context.Context, from, to Job) error {
	if _, err := os.Lstat(b.of(from, "")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return b.Disk.Locked(ctx, b.Home.Lock("changed"), func() error {
		if err := os.Rename(b.of(from, ""), b.of(to, "")); err != nil {
			return &store.NotWritten{Path: b.of(to, ""), Err: err}
		}
		return nil
	})
}

// Prune removes the values of jobs that are gone, by their ids, if none was committed since an instant.
func (b Book) Prune(ctx context.Context, before time.Time, present func(id string) bool) error {
	entries, err := store.List(b.path(""))
	for _, entry := range entries {
		escaped, ofJob := strings.CutPrefix(entry.Name(), marker)
		name, badName := url.PathUnescape(escaped)
		_, id, _ := strings.Cut(name, "-")
		info, statErr := entry.Info()
		if !ofJob || badName != nil || statErr != nil || present(id) || !info.ModTime().Before(before) {
			continue
		}
		err = errors.Join(err, b.Disk.Locked(ctx, b.Home.Lock("changed"), func() error { return store.RemoveAll(ctx, b.path(entry.Name())) }))
	}
	return err
}

// Names reports whether a line of a program's text is a command of ollim changed with a key.
func Names(text []byte, key string) bool {
	const between = `[^\nA-Za-z0-9._-]`
	command := regexp.MustCompile(`(?m)\bchanged` + between + `(?:.*` + between + `)?` + regexp.QuoteMeta(key) + `(?:` + between + `|$)`)
	return command.Match(text)
}

// commit commits one proposal. The caller holds the lock.
func (b Book) commit(proposal, path string) error {
	value, err := store.Read(proposal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // committed by another process in the meantime
	}
	if err != nil {
		return err
	}
	if err := store.Write(path, value, store.Synced); err != nil {
		return err
	}
	return store.Remove(proposal)
}

func (b Book) write(ctx context.Context, path, key string, value []byte, d store.Durability) error {
	if err := check(key, value); err != nil {
		return err
	}
	return b.Disk.Locked(ctx, b.Home.Lock("changed"), func() error { return store.Write(path, value, d) })
}

func (b Book) path(key string) string { return b.Home.State("changed", key) }

func (b Book) of(j Job, key string) string { return b.Home.State("changed", j.name(), key) }

func (b Book) proposals(run string) string { return b.Home.Run(run, "changed") }

func check(key string, value []byte) error {
	if !plaintext.IsID(key) {
		return fmt.Errorf("%q: %w", key, ErrKey)
	}
	if len(value) > MaxValue {
		return fmt.Errorf("%s: %w", key, ErrTooLong)
	}
	return nil
}

// lines returns a value with one newline after its last line; an empty value and a single newline have no lines.
func lines(value []byte) []byte {
	value = bytes.TrimSuffix(value, []byte("\n"))
	if len(value) == 0 {
		return nil
	}
	return append(bytes.Clone(value), '\n')
}
