package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// What of access(2) ollim needs of its own files and directories.
const (
	readWrite      = 4 | 2
	readWriteEnter = readWrite | 1
)

// UsableDir returns why a directory of ollim's own cannot be listed, entered and changed, as a *fs.PathError. A missing one is made when it
// is needed, and is no error.
func UsableDir(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = errLink
	case err == nil && !info.IsDir():
		err = syscall.ENOTDIR
	case err == nil:
		err = syscall.Access(path, readWriteEnter)
	}
	return unusable(path, err)
}

// UsableFile is UsableDir for a file, which ollim reads and writes.
func UsableFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = errLink
	case err == nil && !info.Mode().IsRegular():
		err = ErrNoFile
	case err == nil:
		err = syscall.Access(path, readWrite)
	}
	return unusable(path, err)
}

func unusable(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return &fs.PathError{Op: "open", Path: path, Err: err}
}
