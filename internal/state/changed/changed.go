// Package changed stores the last value of each key of `ollim changed`, so that a pipeline can find out what is new. A value
// is committed at once or, if a run proposed it, when that run ends ok. After a run that fails the old value is kept, and the
// same change is found again.
//
// On disk: state/changed/<key> is the committed value byte for byte, state/runs/<run>/changed/<key> a proposed one; both
// are changed under the lock "changed". Whatever bytes a file holds are a value, so there is no corrupt one.
package changed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	if err := check(key, value); err != nil {
		return "", false, err
	}
	old, err := store.Read(b.path(key))
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

// CommitRun commits the proposals of a run, if any. Each is removed once committed, so that a second call, also after a
// failed one, never restores an old value.
func (b Book) CommitRun(ctx context.Context, run string) error {
	entries, err := os.ReadDir(b.proposals(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.Disk.Locked(ctx, b.Home.Lock("changed"), func() error {
		for _, entry := range entries {
			if !plaintext.IsID(entry.Name()) {
				continue // left by a proposal that was killed while it was written
			}
			if err := b.commit(filepath.Join(b.proposals(run), entry.Name()), entry.Name()); err != nil {
				return err
			}
		}
		return nil
	})
}

// commit commits one proposal. The caller holds the lock.
func (b Book) commit(proposal, key string) error {
	value, err := store.Read(proposal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // committed by another process in the meantime
	}
	if err != nil {
		return err
	}
	if err := store.Write(b.path(key), value, store.Synced); err != nil {
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
