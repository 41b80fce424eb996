package lock

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"
)

// network reports whether a file is on NFS.
func network(f *os.File) bool {
	const magic = 0x6969
	fs, err := fileSystem(f)
	return err == nil && fs.Type == magic
}

// reach waits until the server of a file answers. It does so also in its grace period, in which it opens no files: what it is asked, no client
// keeps, and it needs no lock.
func reach(f *os.File) error {
	_, err := fileSystem(f)
	return err
}

// fileSystem returns what is known of a file's file system.
func fileSystem(f *os.File) (fs syscall.Statfs_t, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return fs, err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = syscall.Fstatfs(int(fd), &fs) })
	return fs, errors.Join(err, failed)
}

// uncached returns the content of the file at path by reads that bypass the cache of this machine. An NFS client keeps the pages of a
// file that another machine has changed as long as a process of this machine has the file open for writing, as the holder of a guard has.
func uncached(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_DIRECT, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	const block = 4096 // a file system may require that the buffer, the offset and the length are multiples of it
	buffer := make([]byte, 2*block)
	buffer = buffer[block-int(uintptr(unsafe.Pointer(&buffer[0]))%block):][:block]
	var text []byte
	for {
		n, err := f.Read(buffer)
		text = append(text, buffer[:n]...)
		switch {
		case errors.Is(err, io.EOF), err == nil && n < block:
			return string(text), nil
		case err != nil:
			return "", err
		}
	}
}
