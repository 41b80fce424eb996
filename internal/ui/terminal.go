package ui

import (
	"cmp"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	switch s := stream.(type) {
	case *os.File:
		return term.IsTerminal(int(s.Fd()))
	case interface{ IsTerminal() bool }:
		return s.IsTerminal()
	}
	return false
}

// Size returns how many columns and rows a terminal has; 0 for what is not known.
func Size(stream any) (columns, rows int) {
	switch s := stream.(type) {
	case *os.File:
		columns, rows, _ = term.GetSize(int(s.Fd()))
	case interface{ Size() (columns, rows int) }:
		return s.Size()
	}
	return columns, rows
}

// Columns returns how wide a text for a stream may be: 80 columns if the stream is no terminal, or one of unknown size.
func Columns(stream any) int {
	columns, _ := Size(stream)
	return cmp.Or(columns, usualColumns)
}

// Environment returns the value of an environment variable.
type Environment func(name string) (value string, set bool)

// Dumb reports whether the terminal may have no control sequences.
func Dumb(lookup Environment) bool {
	kind, _ := lookup("TERM")
	return kind == "" || kind == "dumb"
}

// Coloured reports whether a stream gets colour. NO_COLOR comes before CLICOLOR_FORCE.
func Coloured(stream any, lookup Environment) bool {
	value := func(name string) string {
		v, _ := lookup(name)
		return v
	}
	switch {
	case value("NO_COLOR") != "":
		return false
	case !slices.Contains([]string{"", "0"}, value("CLICOLOR_FORCE")):
		return true
	}
	return IsTerminal(stream) && !Dumb(lookup) && value("CLICOLOR") != "0"
}

// Colours, as control sequences.
const (
	Red    = "\x1b[31m"
	Yellow = "\x1b[33m"
)

// Paint returns a text in a colour; "" is none.
func Paint(text, colour string) string {
	if colour == "" || text == "" {
		return text
	}
	return colour + text + plainStyle
}

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
