package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

var (
	// ErrNoFile is the error of a path that is not a file: a pipe, a device. A directory has the system's own EISDIR.
	ErrNoFile = errors.New("not a file")
	// errLink is the error of a symbolic link where a regular file is required.
	errLink = errors.New("a symbolic link")
)

// Open opens a file of ollim's own, below state/ or sessions/. The file must be regular. Neither the file nor a directory between
// it and the last element named state or sessions may be a symbolic link: a link would redirect a write to a foreign file, and a
// named pipe would block. Otherwise the error is a *fs.PathError for a link, or ErrNoFile. A new file has mode 0600.
func Open(path string, flags int) (*os.File, error) {
	if err := noLinks(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return open(path, flags|syscall.O_NOFOLLOW)
}

// open opens a regular file, without waiting for the other end of a pipe.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, fileMode)
	switch {
	case errors.Is(err, syscall.ELOOP) && flags&syscall.O_NOFOLLOW != 0:
		return nil, &fs.PathError{Op: "open", Path: path, Err: errLink}
	case errors.Is(err, syscall.ENXIO): // a pipe without a reader, or a socket
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNoFile}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNoFile}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads a whole file of ollim's own; see Open.
func Read(path string) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return readAll(f, math.MaxInt-1)
}

// List lists a directory, sorted by name. A missing one is empty.
func List(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// LoadAll loads each entry of a directory, the last name first. bad has the errors of those that load cannot read, which the list lacks.
func LoadAll[T any](dir string, load func(name string) (T, error)) (list []T, bad []error, err error) {
	entries, err := List(dir)
	for _, e := range slices.Backward(entries) {
		item, err := load(e.Name())
		if err != nil {
			bad = append(bad, err)
			continue
		}
		list = append(list, item)
	}
	return list, bad, err
}

// ReadText reads a file written by a person or an agent, of at most most bytes. It must be a regular file: a named pipe would
// block. With noLink the last element of path must not be a link. The error is worded for a message that names the file.
func ReadText(path string, most int, noLink bool) ([]byte, error) {
	flags := os.O_RDONLY
	if noLink {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := open(path, flags)
	switch {
	case errors.Is(err, ErrNoFile):
		return nil, ErrNoFile
	case errors.Is(err, errLink):
		return nil, errLink
	case err != nil:
		return nil, err
	}
	data, err := readAll(f, most)
	if err == nil && len(data) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return data, err
}

// readAll reads at most one byte more than most of an open file, and closes it.
func readAll(f *os.File, most int) ([]byte, error) {
	defer func() { _ = f.Close() }()
	var data bytes.Buffer
	if info, err := f.Stat(); err == nil {
		data.Grow(int(min(info.Size(), int64(most), 16<<20)) + bytes.MinRead) // a single read of most files
	}
	_, err := data.ReadFrom(io.LimitReader(f, int64(most)+1))
	return data.Bytes(), err
}

// Write is Replace for a file of ollim's own: its mode becomes 0600, and a link at path is an error, see Open. Buffered
// is for data that may be lost in a power cut, such as the first lines of a record whose work is lost as well.
func Write(path string, data []byte, d Durability) error {
	if err := noLinks(path); err != nil {
		return &NotWritten{path, err}
	}
	return replace(path, data, fileMode, d)
}

// MkdirOwn is MkdirAll for a directory of ollim's own: a link in its place is an error, see Open.
func MkdirOwn(path string) error { return MkdirAs(path, Synced) }

// MkdirAs is MkdirOwn with a durability of the last name in path.
func MkdirAs(path string, d Durability) error {
	if err := noLinks(path); err != nil {
		return &NotWritten{path, err}
	}
	return mkdirAll(path, d)
}

// noLinks rejects a path with a link below the last directory named state or sessions.
func noLinks(path string) error {
	root := -1 // the length of the path of that directory
	for _, folder := range []string{"/state/", "/sessions/"} {
		if at := strings.LastIndex(path, folder); at >= 0 {
			root = max(root, at+len(folder)-1)
		}
	}
	for p := path; root >= 0 && len(p) > root; p = filepath.Dir(p) {
		if info, err := os.Lstat(p); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: "open", Path: p, Err: errLink}
		}
	}
	return nil
}
