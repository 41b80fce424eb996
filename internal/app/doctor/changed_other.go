//go:build !linux

package doctor

import (
	"io/fs"
	"time"
)

// changed returns the time of the last change of a file.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }
