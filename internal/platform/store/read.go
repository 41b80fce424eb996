package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

var (
	// ErrNoFile is the error of a path that is not a file: a pipe, a device. A directory has the system's own EISDIR.
	ErrNoFile = errors.New("not a file")
	// errLink is the error of a symbolic link where a regular file is required.
	errLink = errors.New("a symbolic link")
)

// ReadText reads a file written by a person or an agent, of at most most bytes. It must be a regular file: a named pipe
// would block. With noLink the last element of path must not be a link. The error is worded for a message that names
// the file.
func ReadText(path string, most int, noLink bool) ([]byte, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if noLink {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if noLink && errors.Is(err, syscall.ELOOP) {
		return nil, errLink
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = ErrNoFile
	}
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Grow(int(min(info.Size(), int64(most))) + bytes.MinRead) // avoids growing in steps
	_, err = text.ReadFrom(io.LimitReader(f, int64(most)+1))
	data := text.Bytes()
	if err == nil && len(data) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return data, err
}

// Cause returns the text of an error of the operating system without its operation and path.
func Cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
