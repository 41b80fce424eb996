//go:build !linux

package cli

import "golang.org/x/sys/unix"

// flushInput drops what was typed at a terminal and not read. It has no effect on anything else.
func flushInput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, unix.TCIFLUSH) }

// The requests that read and change how a terminal works.
const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA
