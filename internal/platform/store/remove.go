package store

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// RemoveAll removes a directory that an agent could write in: it may be deeper than a path is long, hold more entries than memory does,
// and have no rights. The time grows with the number of entries, not with their depth, and two descriptors are enough. The removal stops
// when ctx ends, with its cause; another call continues it. A missing directory is no error, and a link or file in its place is removed.
//
// A directory within it is first moved into one that is made for that purpose, so that each is emptied at the same depth.
func RemoveAll(ctx context.Context, dir string) error {
	around, err := os.OpenRoot(filepath.Dir(dir)) // no link leads out of a root
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = around.Close() }()
	name := filepath.Base(dir)
	info, err := around.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return around.Remove(name)
	}
	_ = around.Chmod(name, dirMode) // the removal returns the error
	root, err := around.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r := removal{ctx: ctx, root: root}
	if err := r.all(); err != nil {
		return err
	}
	return around.Remove(name)
}

// discardLimit bounds Discard: an agent may have made any number of files.
const discardLimit = time.Second

// Discard is RemoveAll at the end of a piece of work. It takes a second at most, and stops when ctx ends, unless that has ended the work. A
// directory that is not removed then is no error: the caller has something that removes it later.
func Discard(ctx context.Context, dir string) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, discardLimit)
	defer cancel()
	if err := RemoveAll(ctx, dir); ctx.Err() == nil {
		return err
	}
	return nil
}

// removal empties one directory.
type removal struct {
	ctx    context.Context
	root   *os.Root
	aside  string // the directory of moved directories; "" before the first
	moved  int    // so many were moved there; their names are numbers
	failed error  // the first one
}

// all empties the directory and each that was moved aside. It returns the first error, or the cause of the end of ctx.
func (r *removal) all() error {
	for r.empty(".") {
	}
	for i := 0; i < r.moved && r.ctx.Err() == nil; i++ {
		dir := filepath.Join(r.aside, strconv.Itoa(i))
		progress, err := true, error(syscall.ENOTEMPTY)
		for progress && isNotEmpty(err) {
			progress = r.empty(dir)
			err = r.root.Remove(dir)
		}
		r.note(err)
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.aside != "" {
		r.note(r.root.Remove(r.aside))
	}
	return r.failed
}

// isNotEmpty reports whether a directory was not removed because something is in it: a file system may leave entries out of a list while
// others are removed.
func isNotEmpty(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// empty removes what is in a directory, moves the directories in it aside, and reports whether anything was taken out of it.
func (r *removal) empty(dir string) (progress bool) {
	f, err := r.open(dir)
	if err != nil {
		r.note(err)
		return false
	}
	defer func() { _ = f.Close() }()
	for r.ctx.Err() == nil {
		const most = 1024 // at once
		entries, err := f.ReadDir(most)
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); path != r.aside && r.ctx.Err() == nil {
				progress = r.take(path, e.IsDir()) || progress
			}
		}
		if errors.Is(err, io.EOF) {
			return progress
		}
		if err != nil {
			r.note(err)
			return false
		}
	}
	return false
}

// open opens a directory. Its mode is changed only if that fails.
func (r *removal) open(dir string) (*os.File, error) {
	f, err := r.root.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		_ = r.root.Chmod(dir, dirMode)
		f, err = r.root.Open(dir)
	}
	return f, err
}

// take takes one entry out of its directory, and reports whether it is gone from there.
func (r *removal) take(path string, isDir bool) bool {
	remove := func() error { return r.root.Remove(path) }
	if isDir {
		if r.aside == "" {
			r.note(r.makeAside())
		}
		remove = func() error { return r.root.Rename(path, filepath.Join(r.aside, strconv.Itoa(r.moved))) }
	}
	err := remove()
	if errors.Is(err, fs.ErrPermission) { // of the directory, or of its parent
		_ = r.root.Chmod(filepath.Dir(path), dirMode)
		if isDir {
			_ = r.root.Chmod(path, dirMode)
		}
		err = remove()
	}
	if err == nil && isDir {
		r.moved++
	}
	r.note(err)
	return err == nil
}

// makeAside makes the directory of moved directories, under a name that is free.
func (r *removal) makeAside() (err error) {
	for i := 0; ; i++ {
		r.aside = strconv.Itoa(i)
		if err = r.root.Mkdir(r.aside, dirMode); !errors.Is(err, syscall.EEXIST) {
			return err
		}
	}
}

// note keeps the first error. What another process has just removed is none.
func (r *removal) note(err error) {
	if !errors.Is(err, fs.ErrNotExist) {
		r.failed = cmp.Or(r.failed, err)
	}
}
