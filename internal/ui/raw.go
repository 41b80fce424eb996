package ui

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

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

// Suspend stops this process and those that belong to it, as Ctrl-Z does where the terminal is what it was before. It returns when they
// continue.
func (r *Raw) Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	defer r.leave()()
	_ = syscall.Kill(0, syscall.SIGTSTP)
	select { // the process may stop a moment later
	case <-continued:
	case <-time.After(time.Second / 4): // it has no shell that could continue it, and the system did not stop it
	}
}

// leave makes the terminal what it was before until the returned function is called.
func (r *Raw) leave() (back func()) {
	r.Restore()
	return func() {
		_, _ = term.MakeRaw(int(r.in.Fd()))
		_, _ = io.WriteString(r.out, markPastes)
	}
}

// Lend is leave for another program. Ctrl-C is a key meanwhile: its signal would end this process, too.
func (r *Raw) Lend() (back func()) {
	back = r.leave()
	fd := int(r.in.Fd())
	if t, err := unix.IoctlGetTermios(fd, getTermios); err == nil {
		t.Lflag &^= unix.ISIG
		_ = unix.IoctlSetTermios(fd, setTermios, t)
	}
	return back
}
