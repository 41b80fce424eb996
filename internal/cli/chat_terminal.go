package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/ui"
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
	size := func() (int, int) { return ui.Size(in) }
	l := newChatLoop(ctx, d, h, o, in, ui.NewScreen(out, ui.ScreenOptions{Size: size, Simple: d.dumb(), Raw: true, Colour: d.colour(d.Stdout)}))
	if !d.dumb() {
		raw, err := ui.MakeRaw(in, out)
		if err != nil {
			return err
		}
		defer raw.Restore()
		l.tty.lend, l.tty.suspend = raw.Lend, raw.Suspend
	}
	defer l.tty.screen.Close()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer close(resized)
	defer signal.Stop(resized)
	go func() {
		for range resized {
			l.tty.screen.Redraw()
		}
	}()
	return l.run(ctx)
}

// newChatLoop returns a loop on a screen. What d writes to a terminal goes to the screen.
func newChatLoop(ctx context.Context, d *deps, h app.Home, o chatOptions, in io.Reader, s *ui.Screen) *chatLoop {
	l := &chatLoop{
		h: h, o: o, group: "prompt-" + rand.Text(), asked: make(chan permission), ended: make(chan ending, 1),
		tty: promptTerminal{in: ui.NewInput(in), screen: s, stderr: d.Stderr, lend: func() func() { return func() {} }, suspend: func() {}},
	}
	var err error
	l.tty.history, err = ui.OpenHistory(ctx, h.Disk, h.Dir.ChatHistory(), h.Dir.Lock("chat_history"), h.HoldsSecret)
	l.tty.editor = ui.NewEditor(l.tty.history)
	l.tty.editor.Complete = complete
	l.o.permits = newPermits(func(q permission) {
		select {
		case l.asked <- q:
		case <-q.ctx.Done():
		}
	})
	d.screen = s
	own := *d
	own.pager, own.atPrompt = nil, true
	own.Out = &shared{w: d.Out}
	if isTerminal(d.Stdout) || !isFile(d.Stdout) {
		own.Out = clean{s}
	}
	own.Stderr = notes{s}
	own.Warn = own.warn
	l.d = &own
	d.Warn = own.warn // of the App, which both share
	l.report(err)
	return l
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

// notes writes lines of ollim's own to a screen, each on a line by itself.
type notes struct{ s *ui.Screen }

func (n notes) Write(p []byte) (int, error) { return len(p), n.s.Note(string(p)) }

// compose edits what is being typed in the owner's editor. The text comes back to the prompt, where Enter sends it.
func (l *chatLoop) compose(ctx context.Context) (err error) {
	f, err := os.CreateTemp("", "ollim-chat-*.md") // only the owner can read it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	l.tty.screen.Change(func(e *ui.Editor) { _, err = f.WriteString(e.Text()) })
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := l.openEditor(ctx, f.Name()); err != nil {
		return err
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	if len(data) > ui.MostTyped {
		return fmt.Errorf("the text is longer than %d KiB: use -f FILE", ui.MostTyped>>10)
	}
	l.tty.screen.Change(func(e *ui.Editor) { e.SetText(string(data)) })
	return nil
}

// openEditor gives the terminal to the editor until it ends.
func (l *chatLoop) openEditor(ctx context.Context, path string) error {
	defer l.tty.screen.Lend()()
	defer l.tty.lend()()
	d := *l.d
	d.Stderr = l.tty.stderr
	return d.openEditor(ctx, path)
}
