package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// What of access(2) ollim needs of its own files and directories.
const (
	readWrite      = 4 | 2
	readWriteEnter = readWrite | 1
)

// UsableDir returns why a directory of ollim's own cannot be listed, entered and changed: its path and the cause. A missing directory is no
// error, because it is made when it is needed.
func UsableDir(path string) error {
	return usable(path, fs.FileMode.IsDir, syscall.ENOTDIR, readWriteEnter)
}

// UsableFile is UsableDir for a file, which ollim reads and writes.
func UsableFile(path string) error { return usable(path, fs.FileMode.IsRegular, ErrNoFile, readWrite) }

func usable(path string, is func(fs.FileMode) bool, isNot error, access uint32) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		err = errors.Unwrap(err) // without the path
	case info.Mode()&fs.ModeSymlink != 0:
		err = errLink
	case !is(info.Mode()):
		err = isNot
	default:
		err = syscall.Access(path, access)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}
