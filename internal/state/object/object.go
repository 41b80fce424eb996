// Package object stores what models were shown, each content once, under its SHA-256: images and documents, which transcripts name, and
// parts of requests, which the records of runs name. It also stores the files that the owner approved, which approvals name. An object
// that none of them names is removed later.
package object

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// errGone is the error of an object that is missing, or whose content does not match its name.
var errGone = errors.New("the file is no longer kept")

// Box is the objects of one data directory.
type Box struct {
	Home paths.Dir
	Disk store.Disk
}

// Put stores a content and returns its hash. An object that exists already counts as written now.
func (b Box) Put(ctx context.Context, content []byte) (hash string, err error) {
	sum := sha256.Sum256(content)
	hash = hex.EncodeToString(sum[:])
	return hash, b.locked(ctx, func() (err error) {
		if _, missing := b.Get(hash); missing != nil {
			err = store.Write(b.path(hash), content, store.Synced)
		}
		return cmp.Or(err, b.touch(hash))
	})
}

// Get returns the content of an object. The error wraps errGone.
func (b Box) Get(hash string) ([]byte, error) {
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != sha256.Size {
		return nil, errGone
	}
	content, err := store.Read(b.path(hash))
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("%w: it is damaged", errGone)
	}
	return content, nil
}

// Add stores contents by their hashes. It does not wait for the disk: an object that a crash cut short is replaced when it is added
// again. An existing object counts as written now, unless it was written within the last hours.
func (b Box) Add(ctx context.Context, contents map[string][]byte) error {
	if len(contents) == 0 {
		return nil
	}
	return b.locked(ctx, func() error {
		for hash, content := range contents {
			if err := b.add(hash, content); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b Box) add(hash string, content []byte) error {
	path := b.path(hash)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = create(path, content)
	case err != nil || info.Size() != int64(len(content)):
		err = store.Write(path, content, store.Buffered)
	case b.Disk.Now().Sub(info.ModTime()).Abs() < fresh:
		return nil
	}
	if err != nil {
		return err
	}
	return b.touch(hash)
}

// touch makes an object count as written now.
func (b Box) touch(hash string) error {
	now := b.Disk.Now()
	if err := os.Chtimes(b.path(hash), now, now); err != nil {
		return &store.NotWritten{Path: b.path(hash), Err: err}
	}
	return nil
}

// create writes a new file in place. This takes half the time of a temporary file and a rename, and after a crash the name and the length
// tell whether the file is complete.
func create(path string, content []byte) error {
	f, err := store.Open(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) { // this is the first object
		return store.Write(path, content, store.Buffered)
	}
	if err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// fresh is the age up to which an existing object keeps its time when it is added again. Sweep must be given a time further back.
const fresh = 12 * time.Hour

// Any reports whether there are objects.
func (b Box) Any() bool {
	list, err := os.ReadDir(b.Home.Objects())
	return err == nil && len(list) > 0
}

// Sweep removes the objects that were written before an instant and for which used is false.
func (b Box) Sweep(ctx context.Context, before time.Time, used func(hash string) bool) error {
	return b.locked(ctx, func() error {
		list, err := store.List(b.Home.Objects())
		for _, entry := range list {
			info, unknown := entry.Info()
			switch {
			case unknown != nil:
				err = errors.Join(err, unknown)
			case info.ModTime().Before(before) && !used(entry.Name()):
				err = errors.Join(err, store.Remove(b.path(entry.Name())))
			}
		}
		return err
	})
}

func (b Box) locked(ctx context.Context, do func() error) error {
	return b.Disk.Locked(ctx, b.Home.Lock("objects"), do)
}

func (b Box) path(hash string) string { return filepath.Join(b.Home.Objects(), hash) }
