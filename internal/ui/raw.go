package ui

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Raw is a terminal whose keys a program gets one by one, as an Editor needs them.
type Raw struct {
	in     *os.File
	out    io.Writer
	before *term.State
}

// Sequences that let a terminal mark what is pasted.
const (
	markPastes      = "\x1b[?2004h"
	markPastesNever = "\x1b[?2004l"
)

// MakeRaw lets the keys of a terminal pass one by one until Restore. out is the terminal, or io.Discard.
func MakeRaw(in *os.File, out io.Writer) (*Raw, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	_, _ = io.WriteString(out, markPastes)
	return &Raw{in, out, before}, nil
}

// Restore makes the terminal what it was before.
func (r *Raw) Restore() {
	_, _ = io.WriteString(r.out, markPastesNever)
	_ = term.Restore(int(r.in.Fd()), r.before)
}

// Lend makes the terminal what it was before, for another program, until the returned function is called. Ctrl-C is a key meanwhile:
// its signal would end this process, too.
func (r *Raw) Lend() (back func()) {
	r.Restore()
	fd := int(r.in.Fd())
	if t, err := unix.IoctlGetTermios(fd, getTermios); err == nil {
		t.Lflag &^= unix.ISIG
		_ = unix.IoctlSetTermios(fd, setTermios, t)
	}
	return func() {
		_, _ = term.MakeRaw(fd)
		_, _ = io.WriteString(r.out, markPastes)
	}
}
