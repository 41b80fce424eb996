package doctor

import (
	"io/fs"
	"syscall"
	"time"
)

// changed returns the time of the last change of a file's inode, which no program can set.
func changed(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}
