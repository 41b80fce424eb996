//go:build !linux

package ui

import "golang.org/x/sys/unix"

// flushInput drops what was typed at a terminal and not read. It has no effect on anything else.
func flushInput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, unix.TCIFLUSH) }

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
