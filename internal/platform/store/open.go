package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Open opens a file of ollim's own, below state/ or sessions/. The file must be regular. Neither the file nor a
// directory between it and the last element named state or sessions may be a symbolic link: a link would redirect a
// write to a foreign file, and a named pipe would block. Otherwise the error is a *fs.PathError for a link, or
// ErrNoFile. A new file has mode 0600.
func Open(path string, flags int) (*os.File, error) {
	if err := noLinks(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
	switch {
	case errors.Is(err, syscall.ELOOP):
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
	defer func() { _ = f.Close() }()
	var data bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Size() < 1<<20 {
		data.Grow(int(info.Size()) + bytes.MinRead) // a single read
	}
	_, err = data.ReadFrom(f)
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
func MkdirOwn(path string) error {
	if err := noLinks(path); err != nil {
		return &NotWritten{path, err}
	}
	return MkdirAll(path)
}

// RemoveAll removes a directory in which an agent may have taken away its own rights.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(dir)) // so that no link leads out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), filepath.Base(dir), func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = root.Chmod(path, 0o700) // the removal returns the error
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(dir))
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
