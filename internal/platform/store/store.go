// Package store keeps files consistent across crashes: a file is replaced completely or not at all, a line is appended
// completely or not at all, a torn or malformed line never hides the others, and a file that cannot be parsed is moved aside
// instead of being overwritten. Callers hold the lock of the file that they change.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Permissions of the data directory: only the owner has access.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// NotWritten is the error of a change that did not reach the disk. The old content is still there, unless only the
// directory could not be synced.
type NotWritten struct {
	Path string
	Err  error
}

func (e *NotWritten) Error() string { return e.Path + ": not written: " + Cause(e.Err) } // without the name of our temporary file

func (e *NotWritten) Unwrap() error { return e.Err }

// Cause returns the text of an error of the operating system without its operation and path.
func Cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err.Error()
	}
	return err.Error()
}

// Exists reports whether there is something at a path that this process may look at.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// MkdirAll creates a directory and its parents with mode 0700. The names of new ones survive a power cut, or what is synced in them would not.
func MkdirAll(path string) error { return mkdirAll(path, Synced) }

// mkdirAll is MkdirAll with a durability of the last name.
func mkdirAll(path string, d Durability) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := MkdirAll(parent); err != nil {
			return err
		}
	}
	err := os.Mkdir(path, dirMode)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
			return nil // another process was first
		}
		err = syscall.ENOTDIR
	}
	if err != nil {
		return &NotWritten{path, err}
	}
	if d != Synced {
		return nil
	}
	return SyncDir(path)
}

// Replace writes data to path atomically: readers see either the old bytes or the new ones, also after a crash or a power cut. A
// symbolic link is followed, so that a file kept elsewhere stays a link. An existing file keeps its permissions.
func Replace(path string, data []byte) error {
	target, mode, err := resolve(path)
	if err != nil {
		return &NotWritten{path, err}
	}
	return replace(target, data, mode, Synced)
}

func replace(path string, data []byte, mode fs.FileMode, d Durability) error {
	temp, err := writeTemp(path, data, mode, d)
	if err != nil {
		return &NotWritten{path, err}
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return &NotWritten{path, err}
	}
	if d != Synced {
		return nil
	}
	return SyncDir(path)
}

// Create writes data to path, which must not exist; the error is fs.ErrExist if it does. The file appears complete.
func Create(path string, data []byte) error { return CreateAs(path, data, Synced) }

// CreateAs is Create with a durability. Unless it is Synced, a power cut may leave the file empty.
func CreateAs(path string, data []byte, d Durability) error {
	temp, err := writeTemp(path, data, fileMode, d)
	if err != nil {
		return &NotWritten{path, err}
	}
	defer func() { _ = os.Remove(temp) }()
	if err := os.Link(temp, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		}
		return &NotWritten{path, err}
	}
	if d != Synced {
		return nil
	}
	return SyncDir(path)
}

// Remove deletes path durably; a missing file is no error.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &NotWritten{path, err}
	}
	return SyncDir(path)
}

// Rename renames a file within its directory, durably.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return &NotWritten{to, err}
	}
	return SyncDir(to)
}

// SetAside moves a file that cannot be parsed to <path>.corrupt-<time> and returns that name. The caller holds the file's lock.
func SetAside(path string, now time.Time) (aside string, err error) {
	for ; ; now = now.Add(time.Microsecond) { // keep files that were set aside earlier
		aside = path + ".corrupt-" + now.UTC().Format("20060102T150405.000000Z")
		if _, err := os.Lstat(aside); err != nil {
			break
		}
	}
	if err := os.Rename(path, aside); err != nil {
		return "", &NotWritten{path, err}
	}
	return aside, SyncDir(path)
}

// resolve follows symbolic links to their target, which need not exist yet.
func resolve(path string) (target string, mode fs.FileMode, err error) {
	const most = 40 // links, as in Linux
	for range most {
		info, err := os.Lstat(path)
		if err != nil {
			return path, fileMode, nil //nolint:nilerr // it is missing; other errors appear when it is written
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path, info.Mode().Perm(), nil
		}
		if real, err := filepath.EvalSymlinks(path); err == nil { // a .. in a link counts from where the names before it lead
			path = real
			continue
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", 0, err
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // a .. of the link counts from there
			if err != nil {
				return "", 0, err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", 0, syscall.ELOOP
}

// inDir opens a file that may be new. It makes the directory of path if that is missing.
func inDir(path string, open func() (*os.File, error)) (*os.File, error) {
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = MkdirAll(filepath.Dir(path)); err == nil {
			f, err = open()
		}
	}
	return f, err
}

// writeTemp writes data, synced, to a new temporary file in the directory of path.
func writeTemp(path string, data []byte, mode fs.FileMode, d Durability) (temp string, err error) {
	f, err := inDir(path, func() (*os.File, error) {
		return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	})
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode))
	if err == nil && d != Buffered {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// SyncDir makes the name of path durable by syncing its directory. A file system that cannot sync a directory (EINVAL)
// is no error: the change itself has happened.
func SyncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return &NotWritten{path, err}
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return &NotWritten{path, err}
	}
	return nil
}

// IsDraft reports whether a name is that of a temporary file: an old one was left by a writer that died.
func IsDraft(name string) bool {
	at := strings.LastIndex(name, ".tmp-")
	if at < 1 || name[0] != '.' {
		return false
	}
	digits := name[at+len(".tmp-"):]
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
