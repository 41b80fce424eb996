package store

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Folder is an open directory. Mark of a file in it takes half of the time of os.Lstat and allocates nothing.
type Folder struct{ file *os.File }

// OpenFolder opens a directory.
func OpenFolder(path string) (Folder, error) {
	f, err := os.Open(path)
	return Folder{f}, err
}

// Close closes the directory.
func (f Folder) Close() { _ = f.file.Close() }

// Mark is what changes with the content of a file.
type Mark struct {
	size    int64
	changed time.Time
	inode   uint64
}

// Mark returns that of the file with a name, also if it is a link. It reports whether it could.
func (f Folder) Mark(name string) (Mark, bool) {
	var stat unix.Stat_t
	if unix.Fstatat(int(f.file.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return Mark{}, false
	}
	return Mark{stat.Size, time.Unix(stat.Mtim.Unix()), stat.Ino}, true
}

// Before reports whether the file was written before an instant.
func (m Mark) Before(t time.Time) bool { return m.changed.Before(t) }

// Append appends the size in bytes, the time in nanoseconds and the inode.
func (m Mark) Append(to []byte) []byte {
	to = strconv.AppendInt(to, m.size, 10)
	to = strconv.AppendInt(append(to, ' '), m.changed.UnixNano(), 10)
	return strconv.AppendUint(append(to, ' '), m.inode, 10)
}
