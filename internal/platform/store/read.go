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
	// ErrNoFile is what is not a file: a pipe, a device. A directory is the system's own EISDIR.
	ErrNoFile = errors.New("not a file")
	// errLink is a symbolic link where only the file itself will do.
	errLink = errors.New("a symbolic link")
)

// ReadText reads a file that a person or an agent wrote, of at most so many bytes. Nothing but a file is read: a named pipe would
// never answer. With noLink the last name of path must not be a link. The error's words are for a message that names the file.
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
	text.Grow(int(min(info.Size(), int64(most))) + bytes.MinRead) // or it would grow in steps
	_, err = text.ReadFrom(io.LimitReader(f, int64(most)+1))
	data := text.Bytes()
	if err == nil && len(data) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return data, err
}

// Cause is an error of the operating system in its own words, without its operation and path.
func Cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
