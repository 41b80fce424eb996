package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ollim/ollim/internal/app"
)

// interrupted is the cause with which Ctrl-C ends a turn.
func interrupted() error { return signalled(syscall.SIGINT) }

func (d *deps) chatOnTerminal(ctx context.Context, h app.Home, o chatOptions) error {
	in := d.In.(*os.File) //nolint:forcetypeassert // it is a terminal
	out := io.Discard
	for _, stream := range []io.Writer{d.Stdout, d.Stderr} {
		if isTerminal(stream) {
			out = stream
		}
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	l, s := newChatLoop(d, h, o, in, out)
	defer s.end()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	resized <- syscall.SIGWINCH
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-resized:
				if width, height, err := term.GetSize(int(in.Fd())); err == nil && width > 0 { // a serial line has no size
					s.resize(width, height)
				}
			}
		}
	}()
	l.editor.term.SetBracketedPasteMode(true)
	defer l.editor.term.SetBracketedPasteMode(false)
	return l.run(ctx)
}

// newChatLoop returns a loop that reads keys and writes to a terminal in raw mode. What d writes to a terminal goes to its
// screen.
func newChatLoop(d *deps, h app.Home, o chatOptions, in io.Reader, out io.Writer) (*chatLoop, *screen) {
	k := &keys{in: in, interrupts: make(chan struct{}, 1)}
	l := &chatLoop{
		h: h, o: o, group: "prompt-" + rand.Text(), asked: make(chan permission), ended: make(chan ending, 1),
		editor: editor{keys: k, lines: make(chan typed), term: term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{k, out}, "> ")},
	}
	l.editor.term.AutoCompleteCallback = complete
	l.o.permits = newPermits(func(q permission) {
		select {
		case l.asked <- q:
		case <-q.ctx.Done():
		}
	})
	s := &screen{term: l.editor.term, width: 80}
	own := *d
	own.pager = nil
	own.Out = &shared{w: d.Out}
	if isTerminal(d.Stdout) || !isFile(d.Stdout) {
		own.Out = clean{s}
	}
	own.Stderr = notes{s}
	own.Warn = own.warn
	l.d = &own
	d.Warn = own.warn // of the App, which both share
	return l, s
}

func isFile(stream any) bool {
	_, ok := stream.(*os.File)
	return ok
}

// shared is a stream to which a turn and the commands beside it write.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

func (s *shared) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return flush(s.w)
}

// keys reads what is typed. Ctrl-C is not passed on: it is reported, and clears the line.
type keys struct {
	in         io.Reader
	interrupts chan struct{}
	rest       []byte
}

const (
	ctrlC     = "\x03"
	clearLine = "\x0b\x15" // to its end, and to its beginning
)

func (k *keys) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		n, err := k.in.Read(p)
		if err != nil {
			return n, err
		}
		k.rest = p[:n:n]
		if bytes.Contains(k.rest, []byte(ctrlC)) {
			select {
			case k.interrupts <- struct{}{}:
			default: // one is enough
			}
			k.rest = bytes.ReplaceAll(k.rest, []byte(ctrlC), []byte(clearLine))
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// screen writes above the line that is being edited: whole lines, and of a longer one whole rows.
type screen struct {
	mu    sync.Mutex
	term  *term.Terminal
	width int
	row   []byte // not written yet
}

func (s *screen) resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width = width
	_ = s.term.SetSize(width, height)
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row = append(s.row, p...)
	end := bytes.LastIndexByte(s.row, '\n') + 1
	for utf8.RuneCount(s.row[end:]) >= s.width {
		for range s.width {
			_, size := utf8.DecodeRune(s.row[end:])
			end += size
		}
	}
	return len(p), s.flush(end)
}

func (s *screen) flush(end int) error {
	if end == 0 {
		return nil
	}
	_, err := s.term.Write(s.row[:end])
	s.row = append([]byte(nil), s.row[end:]...)
	return err
}

// end writes the rest, and leaves the line of the prompt.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term.SetPrompt("")
	_, _ = s.term.Write(append(s.row, '\n'))
}

// notes writes lines of ollim's own to a screen, each on a line by itself.
type notes struct{ s *screen }

func (n notes) Write(p []byte) (int, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if len(n.s.row) > 0 {
		n.s.row = append(n.s.row, '\n')
	}
	err := n.s.flush(len(n.s.row))
	if err == nil {
		_, err = n.s.term.Write(p)
	}
	return len(p), err
}
