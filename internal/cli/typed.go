package cli

// This file reads what the owner types at a terminal. What was typed before a question is no answer to it: it is discarded before the
// question is shown, in the kernel, in what was read and in the line that is being edited.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// terminalInput is a terminal as input. A read and a discard exclude each other, so it is known of each byte whether it was typed before
// a discard or after it. It is for one reader.
type terminalInput struct {
	in io.Reader

	mu  sync.Mutex
	era int // the number of discards
}

// discard drops what was typed and not read, and returns the era that begins.
func (t *terminalInput) discard() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.era++
	if f, ok := t.file(); ok {
		flushInput(int(f.Fd()))
	}
	return t.era
}

// now returns the present era.
func (t *terminalInput) now() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.era
}

func (t *terminalInput) file() (*os.File, bool) {
	f, ok := t.in.(*os.File)
	return f, ok && isTerminal(f)
}

// read reads what was typed, and returns the era in which that was.
func (t *terminalInput) read(p []byte) (n, era int, err error) {
	f, ok := t.file()
	for ok {
		ready := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} //nolint:gosec // a descriptor
		_, err := unix.Poll(ready, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || ready[0].Revents&unix.POLLNVAL != 0 {
			break // a system that cannot wait for this terminal
		}
		t.mu.Lock()
		if n, err := unix.Poll(ready, 0); err == nil && n > 0 { // and was not discarded meanwhile
			defer t.mu.Unlock()
			n, err := f.Read(p)
			return n, t.era, err
		}
		t.mu.Unlock()
	}
	n, err = t.in.Read(p)
	return n, t.now(), err
}

// line reads a line of a terminal that is not in raw mode, byte by byte: what follows it stays unread.
func (t *terminalInput) line() (l typedLine) {
	for b := make([]byte, 1); ; {
		n, era, err := t.read(b)
		if era != l.era {
			l = typedLine{era: era}
		}
		if n > 0 && b[0] == '\n' {
			return l
		}
		l.text += string(b[:n])
		if err != nil {
			l.err = err
			return l
		}
	}
}

type typedLine struct {
	text string
	era  int   // in which it was typed
	err  error // of the input, after the text
}

// asker asks the owner on a terminal that is not in raw mode, one question at a time.
type asker struct {
	in    *terminalInput
	lines chan typedLine // gets what is being read; nil: nothing
}

func newAsker(in io.Reader) *asker { return &asker{in: &terminalInput{in: in}} }

// ask shows a question and returns the line that is typed then, without its end. The error is that of the input, with what was typed
// before it, or the cause with which ctx has ended. A read cannot be interrupted: it goes on for the next question.
func (a *asker) ask(ctx context.Context, out io.Writer, question string) (string, error) {
	era := a.in.discard()
	if _, err := fmt.Fprint(out, question); err != nil {
		return "", err
	}
	for {
		if a.lines == nil {
			lines := make(chan typedLine, 1)
			a.lines = lines
			go func() { lines <- a.in.line() }()
		}
		select {
		case l := <-a.lines:
			if a.lines = nil; l.era == era {
				return strings.TrimSuffix(l.text, "\r"), l.err
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// askHidden is ask without showing what is typed. Standard functions for this cannot be interrupted, and take what was typed before.
func (a *asker) askHidden(ctx context.Context, out io.Writer, question string) (string, error) {
	if f, ok := a.in.file(); ok {
		show, err := hideInput(int(f.Fd()))
		if err != nil {
			return "", err
		}
		defer func() {
			show()
			_, _ = fmt.Fprintln(out)
		}()
	}
	return a.ask(ctx, out, question)
}

// hideInput makes a terminal not show what is typed, until show is called.
func hideInput(fd int) (show func(), err error) {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, unix.IoctlSetTermios(fd, setTermios, &hidden)
}
