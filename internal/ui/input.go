package ui

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Input is a terminal as input. A read and a discard exclude each other, so it is known of each byte whether it was typed before a
// discard or after it: in which era. It is for one reader.
type Input struct {
	in io.Reader

	mu  sync.Mutex
	era int // the number of discards
}

// NewInput returns an Input that reads a terminal, or something like it.
func NewInput(in io.Reader) *Input { return &Input{in: in} }

// Discard drops what was typed and not read, and returns the era that begins.
func (i *Input) Discard() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.era++
	if f, ok := i.file(); ok {
		flushInput(int(f.Fd()))
	}
	return i.era
}

// Era returns the present era.
func (i *Input) Era() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.era
}

func (i *Input) file() (*os.File, bool) {
	f, ok := i.in.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// Hide makes the terminal not show what is typed, until show is called. For anything else show is nil.
func (i *Input) Hide() (show func(), err error) {
	f, ok := i.file()
	if !ok {
		return nil, nil
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }, unix.IoctlSetTermios(fd, setTermios, &hidden)
}

// Read reads what was typed, and returns the era in which that was.
func (i *Input) Read(p []byte) (n, era int, err error) {
	f, ok := i.file()
	for ok {
		ready := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}} //nolint:gosec // a descriptor
		_, err := unix.Poll(ready, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || ready[0].Revents&unix.POLLNVAL != 0 {
			break // a system that cannot wait for this terminal
		}
		i.mu.Lock()
		if n, err := unix.Poll(ready, 0); err == nil && n > 0 { // and was not discarded meanwhile
			defer i.mu.Unlock()
			n, err := f.Read(p)
			return n, i.era, err
		}
		i.mu.Unlock()
	}
	n, err = i.in.Read(p)
	return n, i.Era(), err
}

// Chunk is what was typed at once.
type Chunk struct {
	Text []byte
	Era  int
	Err  error // of the input, after the text
}

// Chunks reads what is typed and sends it, until the first error. After each chunk it reads on when the receiver asks for more, so
// that another program may read the terminal meanwhile.
func (i *Input) Chunks() (chunks <-chan Chunk, more func()) {
	sent, asked := make(chan Chunk), make(chan struct{}, 1)
	go func() {
		for {
			text := make([]byte, 4<<10)
			n, era, err := i.Read(text)
			sent <- Chunk{text[:n], era, err}
			if err != nil {
				return
			}
			<-asked
		}
	}()
	return sent, func() { asked <- struct{}{} }
}
