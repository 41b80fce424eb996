package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/runlog"
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
	defer close(resized)
	defer signal.Stop(resized)
	resized <- syscall.SIGWINCH
	go func() {
		for range resized {
			if width, height, err := term.GetSize(int(in.Fd())); err == nil && width > 0 { // a serial line has no size
				s.resize(width, height)
			}
		}
	}()
	l.editor.term.SetBracketedPasteMode(true)
	defer l.editor.term.SetBracketedPasteMode(false)
	return l.run(ctx)
}

// newChatLoop returns a loop on a terminal in raw mode. What d writes to a terminal goes to the screen.
func newChatLoop(d *deps, h app.Home, o chatOptions, in io.Reader, out io.Writer) (*chatLoop, *screen) {
	k := newKeys(in)
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

// keys reads what is typed, for an editor. Ctrl-C is not passed on: it is reported, and clears the line, as a discard does.
type keys struct {
	in         *terminalInput
	chunks     chan chunk
	discarded  chan struct{} // holds one after a discard
	interrupts chan struct{}

	rest []byte
	era  int // of the last key that was passed on
}

// chunk is what was typed at once.
type chunk struct {
	text []byte
	era  int
	err  error
}

const (
	ctrlC     = "\x03"
	clearLine = "\x0b\x15" // to its end, and to its beginning; in a text that is being pasted it stays, and the text is no answer
)

func newKeys(in io.Reader) *keys {
	k := &keys{
		in: &terminalInput{in: in}, chunks: make(chan chunk), discarded: make(chan struct{}, 1), interrupts: make(chan struct{}, 1),
	}
	go k.listen()
	return k
}

// listen reads the terminal until its end.
func (k *keys) listen() {
	for {
		text := make([]byte, 256)
		n, era, err := k.in.read(text)
		k.chunks <- chunk{text[:n], era, err}
		if err != nil {
			close(k.chunks)
			return
		}
	}
}

// discard drops what was typed and is no line that Read has passed on, and returns the era that begins.
func (k *keys) discard() int {
	era := k.in.discard()
	select {
	case k.discarded <- struct{}{}:
	default: // one is enough
	}
	return era
}

func (k *keys) Read(p []byte) (int, error) {
	for len(k.rest) == 0 {
		select {
		case <-k.discarded:
			k.follow(k.in.now())
		case c, open := <-k.chunks:
			if !open {
				return 0, io.EOF
			}
			if k.take(c); len(k.rest) == 0 && c.err != nil {
				return 0, c.err
			}
		}
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// follow clears the line in the editor if it was begun in an earlier era.
func (k *keys) follow(era int) {
	if era > k.era {
		k.era, k.rest = era, []byte(clearLine)
	}
}

// take passes a chunk on, unless it was typed before a discard.
func (k *keys) take(c chunk) {
	if bytes.Contains(c.text, []byte(ctrlC)) {
		select {
		case k.interrupts <- struct{}{}:
		default: // one is enough
		}
	}
	if c.era < k.era {
		return
	}
	k.follow(c.era)
	k.rest = append(k.rest, bytes.ReplaceAll(c.text, []byte(ctrlC), []byte(clearLine))...)
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

// permission is a question to the owner: may the agent use a tool? Its context ends when nobody waits for the answer any more.
type permission struct {
	ctx    context.Context //nolint:containedctx // it belongs to the question
	use    runlog.Event
	answer chan string // takes one: yes, always or no
}

// Answers to a question. The first letter of one is enough.
const (
	yes    = "yes"
	always = "always"
	no     = "no"
)

// over is closed when nobody waits for the answer any more; nil for no question.
func (q *permission) over() <-chan struct{} {
	if q == nil {
		return nil
	}
	return q.ctx.Done()
}

// permits asks the owner, and remembers what is allowed always. It is for one question at a time.
type permits struct {
	always map[string]bool // patterns that the owner has allowed for as long as the process runs
	ask    func(permission)
}

func newPermits(ask func(permission)) *permits { return &permits{map[string]bool{}, ask} }

// permit is a runner.Observer's Permit.
func (p *permits) permit(ctx context.Context, use runlog.Event) bool {
	if p.always[use.Text] {
		return true
	}
	question := permission{ctx, use, make(chan string, 1)}
	p.ask(question)
	select {
	case <-ctx.Done():
		return false
	case answer := <-question.answer:
		p.always[use.Text] = answer == always
		return answer != no
	}
}

// String is what the owner is asked.
func (q permission) String() string {
	return fmt.Sprintf("The agent wants to use %s. Allow it? y (once), a (always in this chat), n: ", printable(q.use.Text))
}

// reply takes what the owner typed, and reports whether it is an answer.
func (q permission) reply(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, answer := range []string{yes, always, no} {
		if text == answer || text == answer[:1] {
			q.answer <- answer
			return true
		}
	}
	return false
}

// permitsOnTerminal asks on the terminal of a process that reads nothing else from it.
func (d *deps) permitsOnTerminal() *permits {
	asks := newAsker(d.In)
	return newPermits(func(q permission) {
		defer func() { _, _ = d.progress.giveWay(io.Discard, []byte("\n")) }() // Enter ended the line of the question
		for {
			line, err := asks.ask(q.ctx, d.talk(), q.String())
			switch {
			case q.ctx.Err() != nil:
				_, _ = fmt.Fprintln(d.Stderr)
				return
			case q.reply(line):
				return
			case err != nil:
				q.answer <- no
				return
			}
		}
	})
}
