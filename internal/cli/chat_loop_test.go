package cli

import (
	"context"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/ui"
)

// promptLoop is a prompt loop whose keys the test presses.
type promptLoop struct {
	t     *testing.T
	keys  io.WriteCloser
	end   context.CancelCauseFunc
	ended chan error

	mu      sync.Mutex
	screen  strings.Builder
	written chan struct{} // holds one if the screen has changed since the last look
}

func newScreen(t *testing.T) *promptLoop { return &promptLoop{t: t, written: make(chan struct{}, 1)} }

func (p *promptLoop) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.written <- struct{}{}:
	default:
	}
	return p.screen.Write(b)
}

// shown returns what was written to the terminal so far.
func (p *promptLoop) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.screen.String()
}

func (p *promptLoop) typeIn(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, keys); err != nil {
		p.t.Fatal(err)
	}
}

// await waits until the terminal shows a text so many times.
func (p *promptLoop) await(text string, times int) {
	p.t.Helper()
	late := time.After(patience)
	for strings.Count(p.shown(), text) < times {
		select {
		case <-p.written:
		case <-late:
			p.t.Fatalf("the terminal does not show %q %d times: %q", text, times, p.shown())
		}
	}
}

// promptLoop starts a prompt loop.
func (w *world) promptLoop() *promptLoop { return w.promptLoopWith(chatOptions{}) }

func (w *world) promptLoopWith(o chatOptions) *promptLoop {
	in, keys := io.Pipe()
	return w.promptLoopOn(in, keys, o)
}

// promptLoopOn starts a prompt loop on a terminal in raw mode, or on something like it.
func (w *world) promptLoopOn(in io.Reader, keys io.WriteCloser, o chatOptions) *promptLoop {
	w.t.Helper()
	ctx, end := context.WithCancelCause(w.t.Context())
	p := newScreen(w.t)
	p.keys, p.end, p.ended = keys, end, make(chan error, 1)
	d := w.deps(nil, p, p)
	d.Warn, d.Sleep = d.warn, process.Sleep
	h := homeOf(w.t, d)
	l := newChatLoop(ctx, d, h, o, in, ui.NewScreen(p, ui.ScreenOptions{Raw: true}))
	go func() {
		err := l.run(ctx)
		l.tty.screen.Close()
		p.ended <- err
	}()
	p.await("> ", 1)
	return p
}

// leave waits for the end of the loop.
func (p *promptLoop) leave() {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Error(err)
		}
	case <-time.After(patience):
		p.t.Fatalf("the loop has not ended: %q", p.shown())
	}
}

// TestALongLineIsSentWhole: a typed line and a pasted one reach the agent with their ends; one that is too long is not sent.
func TestALongLineIsSentWhole(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Well."} })
	p := w.promptLoop()
	long := strings.Repeat("x", 4200)
	p.typeIn(long + "end\r")
	p.await("Well.", 1)
	p.typeIn("\x1b[200~" + long + "\x1b[201~ pasted\r")
	p.await("Well.", 2)
	if q := api.Requests(); len(q) != 2 || !q[0].Has(long+"end") || !q[1].Has(long+" pasted") {
		t.Errorf("%d requests", len(q))
	}
	p.typeIn("\x1b[200~" + strings.Repeat(long+"\r", 1+ui.MostTyped/len(long)) + "\x1b[201~\r")
	p.await("was not sent", 1)
	p.typeIn("exit\r")
	p.leave()
	if n := len(api.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestPromptLoop: a line is a turn, which shows the pending updates; commands and empty lines are none; exit leaves.
func TestPromptLoop(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("update", "add", "oil broke 75")
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Text: "re: " + r.Model + " and\nmore"}
	})
	p := w.promptLoop()
	p.await("oil broke 75", 1)
	p.typeIn("hello\r")
	p.await("more", 1)
	if n := len(api.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
	for line, answer := range map[string]string{
		"/help": "//TEXT", "/cost": "main", "/status": "spent", "/model claude-haiku-4-5": "claude-haiku-4-5",
		"/nothing": "unknown command /nothing: /help lists them", "\r\r": "> ", "/thinking maybe": "chat: /thinking:", "/clear": "your next message begins",
	} {
		p.typeIn(line + "\r")
		p.await(answer, 1)
	}
	if n := len(api.Requests()); n != 1 {
		t.Errorf("a command asked the model: %d requests", n)
	}
	p.typeIn("//model is a word\r")
	p.await("re: claude-haiku-4-5 and", 1)
	p.typeIn("/etc/hosts is odd\r")
	p.await("re: claude-haiku-4-5 and", 2)
	for i, want := range []string{"/model is a word", "/etc/hosts is odd"} {
		if got := api.Requests()[i+1].LastUserText(); !strings.HasSuffix(strings.TrimSpace(got), "\n"+want) {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	p.typeIn("exit\r")
	p.leave()
	if n := len(api.Requests()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

// TestPromptLoopReadsTheSettingsAgain: what another command sets holds from the next message on; invalid settings change nothing.
func TestPromptLoopReadsTheSettingsAgain(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		return anthropicapi.Reply{Text: "by " + r.Model + "."}
	})
	w.must("config", "set", "chat.model", "claude-opus-4-5")
	p := w.promptLoop()
	p.typeIn("one\r")
	p.await("by claude-opus-4-5.", 1)
	w.must("config", "set", "chat.model", "claude-haiku-4-5")
	p.typeIn("two\r")
	p.await("by claude-haiku-4-5.", 1)
	w.replace("config.yaml", "no: settings\n")
	p.typeIn("three\r")
	p.await("stay in force", 1)
	p.await("by claude-haiku-4-5.", 2)
	p.typeIn("exit\r")
	p.leave()
}

// TestPromptLoopJoinsWhatWaits: what is typed during a turn is one message of the next; a message of another chat keeps them apart.
func TestPromptLoopJoinsWhatWaits(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	p := w.promptLoop()
	p.typeIn("one\r")
	<-asked
	p.typeIn("two\rthree\r")
	p.await("queued", 2)
	other := w.chat("other")
	p.typeIn("four\r\x04") // the loop ends when all is answered
	p.await("queued", 3)
	close(hold)
	for _, want := range []string{"two\n\nthree", "other", "four"} {
		if got := <-asked; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
	p.leave()
	<-other.ended
	p.await("re: four", 1)
}

// TestModelDuringATurn: a model that is chosen during a turn is that of the next one.
func TestModelDuringATurn(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	asked, hold := make(chan string, 2), make(chan struct{})
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		asked <- r.Model
		<-hold
		return anthropicapi.Reply{Text: "done"}
	})
	p := w.promptLoop()
	p.typeIn("one\r")
	if got := <-asked; got == "claude-haiku-4-5" {
		t.Errorf("the first turn used %s", got)
	}
	p.typeIn("/model claude-haiku-4-5\r")
	p.await("claude-haiku-4-5\r\n", 1)
	close(hold)
	p.await("done", 1)
	p.typeIn("two\r")
	if got := <-asked; got != "claude-haiku-4-5" {
		t.Errorf("the second turn used %s", got)
	}
	p.typeIn("exit\r")
	p.leave()
}

// TestCtrlCStopsTheTurn: Ctrl-C stops a turn and clears a line that is being typed; the loop goes on with what waits.
func TestCtrlCStopsTheTurn(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	defer close(hold)
	p := w.promptLoop()
	p.typeIn("never sent\x03one\r")
	if got := <-asked; got != "one" {
		t.Errorf("asked %q", got)
	}
	p.typeIn("two\r")
	p.await("queued", 1)
	p.typeIn("half\x03")
	p.await("interrupted", 1)
	if got := <-asked; got != "two" {
		t.Errorf("asked %q", got)
	}
	p.await("re: two", 1)
	p.typeIn("\x04")
	p.leave()
	if n := len(w.queue()); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestPasteIsOneMessage: the lines of a pasted text are sent together, when Enter is pressed.
func TestPasteIsOneMessage(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	close(hold)
	p := w.promptLoop()
	p.typeIn("\x1b[200~/help\r\nsecond\r\nthird\x1b[201~")
	p.typeIn("\r")
	if got := <-asked; got != "/help\nsecond\nthird" {
		t.Errorf("asked %q", got)
	}
	p.await("re: ", 1)
	p.typeIn("/exit\r")
	p.leave()
}

// TestLoopEndsInATurn: a loop that is ended by a signal leaves its messages: the turn is reported, and what waits is answered.
func TestLoopEndsInATurn(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	p := w.promptLoop()
	p.typeIn("one\r")
	<-asked
	p.typeIn("two\rthree\r")
	p.await("queued", 2)
	p.end(signalled(syscall.SIGHUP))
	<-p.ended
	close(hold)
	w.must("chat", "four")
	for _, want := range []string{"two\n\nthree", "four"} {
		got := <-asked
		if !strings.HasSuffix(got, want) {
			t.Errorf("asked %q, want %q", got, want)
		}
		if strings.Contains(got, "NOTE: A turn was cut off") != (want != "four") {
			t.Errorf("the turn of the first message is reported in %q", got)
		}
	}
	if n := len(w.queue()); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"/he": "/help ", "/c": "/c", "/co": "/co", "/com": "/compact ", "/x": "/x", "he": "", "/model x": ""} {
		got, pos, ok := complete(line, len(line))
		if got != want || ok != (want != "") || ok && pos != len(want) {
			t.Errorf("%q: %q, %d, %v", line, got, pos, ok)
		}
	}
}

// TestRowsOfALongLine: a line longer than the terminal is shown row by row as it arrives, and nothing is added to it.
func TestRowsOfALongLine(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	long := strings.Repeat("äb ", 100)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: long + "end"} })
	p := w.promptLoop()
	p.typeIn("go\r")
	p.await("end", 1)
	if text := strings.NewReplacer("> ", "", "\x1b[2D", "", "\x1b[K", "", "\r\n", "").Replace(p.shown()); !strings.Contains(text, long+"end") {
		t.Errorf("shown: %q", p.shown())
	}
	p.typeIn("exit\r")
	p.leave()
}
