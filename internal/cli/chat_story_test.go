package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// chat is a chat that runs beside the test.
type chat struct {
	cancel context.CancelCauseFunc
	ended  chan result
}

// chat starts a chat and returns when it is in the queue.
func (w *world) chat(args ...string) chat {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.t.Context())
	c := chat{cancel, make(chan result, 1)}
	before := len(w.queue())
	go func() {
		var out, errOut bytes.Buffer
		d := w.deps(strings.NewReader(""), &out, &errOut)
		d.Sleep = process.Sleep
		status := execute(ctx, d, append([]string{"chat"}, args...))
		c.ended <- result{status, out.String(), errOut.String()}
	}()
	for len(w.queue()) == before {
		select {
		case r := <-c.ended:
			w.t.Fatalf("chat %q ended: %+v", args, r)
		case <-time.After(time.Millisecond):
		}
	}
	w.pass(time.Second)
	return c
}

// queue is the names of the messages in the queue.
func (w *world) queue() []string {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.dir, "state/queue/*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return names
}

// slow makes a world whose model answers "re: TEXT" to each message, the first one when hold is closed. asked gets the text of
// each request.
func slow(t *testing.T) (w *world, asked chan string, hold chan struct{}) {
	w, api := newNativeWorld(t)
	asked, hold = make(chan string, 20), make(chan struct{})
	var first sync.Once
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		_, text, _ := strings.Cut(strings.TrimSpace(r.LastUserText()), "\n\n")
		reply := anthropicapi.Reply{Text: "re: " + text}
		first.Do(func() { reply.Hold = hold })
		asked <- text
		return reply
	})
	return w, asked, hold
}

func TestMessagesAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	chats := map[string]chat{"one": w.chat("one")}
	<-asked
	words := []string{"two", "three", "four"}
	for _, text := range words {
		chats[text] = w.chat(text)
	}
	if out := w.must("status"); strings.Count(out, "\nqueued\t") != 3 || strings.Count(out, "\nrunning\t") != 1 {
		t.Errorf("status:\n%s", out)
	}
	close(hold)
	for _, text := range words {
		if got := <-asked; got != text {
			t.Errorf("answered %q, want %q", got, text)
		}
	}
	for text, c := range chats {
		r := <-c.ended
		if r.status != 0 || r.out != "re: "+text+"\n" {
			t.Errorf("%s: %+v", text, r)
		}
		if text != "one" && !strings.Contains(r.errOut, "chat: queued: ") {
			t.Errorf("%s was not told: %q", text, r.errOut)
		}
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, "state/queue")); err != nil || len(left) != 0 {
		t.Errorf("left in the queue: %v, %v", left, err)
	}
}

// TestWithdrawnMessage: Ctrl-C takes a message that waits out of the queue.
func TestWithdrawnMessage(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	first := w.chat("one")
	<-asked
	second, third := w.chat("two"), w.chat("three")
	second.cancel(signalled(syscall.SIGINT))
	if r := <-second.ended; r.status != 130 || r.out != "" {
		t.Errorf("withdrawn: %+v", r)
	}
	close(hold)
	if got := <-asked; got != "three" {
		t.Errorf("answered %q", got)
	}
	<-first.ended
	if r := <-third.ended; r.status != 0 {
		t.Errorf("%+v", r)
	}
}

// TestStoppedByOwner: a turn that its owner stops with Ctrl-C is not among the failures of the status; one that SIGTERM ends is.
func TestStoppedByOwner(t *testing.T) {
	t.Parallel()
	for by, failed := range map[syscall.Signal]int{syscall.SIGINT: 0, syscall.SIGTERM: 1} {
		w, asked, hold := slow(t)
		turn := w.chat("one")
		<-asked
		turn.cancel(signalled(by))
		if r := <-turn.ended; r.status != 128+int(by) {
			t.Errorf("%v: %+v", by, r)
		}
		close(hold)
		if s := w.status(); len(s.Failed) != failed {
			t.Errorf("%v: failed %+v", by, s.Failed)
		}
		if last := w.last(); last["outcome"] != "interrupted" || failed == 0 && last["error"] != "stopped by you" {
			t.Errorf("%v: %v, %v", by, last["outcome"], last["error"])
		}
	}
}

// TestSenderEndsBeforeItsTurn: a message whose sender was ended by SIGTERM is answered by the next one, first, and its answer is
// delivered.
func TestSenderEndsBeforeItsTurn(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	w.must("config", "set", "delivery.command", "sh", "-c", "cat >> delivered.txt")
	first := w.chat("one")
	<-asked
	second := w.chat("two")
	second.cancel(signalled(syscall.SIGTERM))
	if r := <-second.ended; r.status != 143 {
		t.Errorf("ended: %+v", r)
	}
	third := w.chat("three")
	close(hold)
	for _, want := range []string{"two", "three"} {
		if got := <-asked; got != want {
			t.Errorf("answered %q, want %q", got, want)
		}
	}
	<-first.ended
	if r := <-third.ended; r.out != "re: three\n" {
		t.Errorf("%+v", r)
	}
	if got := w.read("delivered.txt"); got != "re: two\n" {
		t.Errorf("delivered %q", got)
	}
	if n := len(w.queue()); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestAbandonedMessage: a message that nobody comes to answer is answered by the process that tick starts.
func TestAbandonedMessage(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	w.must("config", "set", "delivery.command", "sh", "-c", "cat >> delivered.txt")
	first := w.chat("one")
	<-asked
	second := w.chat("two")
	second.cancel(signalled(syscall.SIGHUP))
	<-second.ended
	close(hold)
	<-first.ended
	if n := len(w.queue()); n != 1 {
		t.Fatalf("%d messages are left, want 1", n)
	}
	w.must("chat", "--abandoned")
	if got := w.read("delivered.txt"); got != "re: two\n" || len(w.queue()) != 0 {
		t.Errorf("delivered %q", got)
	}
	w.must("chat", "--abandoned") // there is nothing to do
	if n := len(asked); n != 1 {
		t.Errorf("%d more requests, want that of the message alone", n)
	}
}

// TestInterrupt: a message stops the turn in progress, whose text so far stays in the session, and goes before those that wait.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string][]string{"flag": {"--interrupt"}, "setting": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("turns:\n  - - text: It is a long\n    - delay: 1h\n    - text: story\n  - - text: second\n  - - text: third\n")
			first := w.chat("tell me")
			for !strings.Contains(w.run("run", "log", "main").out, "It is a long") {
				time.Sleep(time.Millisecond)
			}
			waiting := w.chat("and then?")
			if flag == nil {
				w.must("config", "set", "chat.busy", "interrupt")
			}
			stop := w.chat(append(flag, "stop")...)
			if r := <-first.ended; r.status != 130 || !strings.Contains(r.errOut, "stopped by a new message") {
				t.Errorf("the turn that was stopped: %+v", r)
			}
			if r := <-stop.ended; r.status != 0 || r.out != "second\n" {
				t.Errorf("the message that stopped it: %+v", r)
			}
			if r := <-waiting.ended; r.status != 0 || r.out != "third\n" {
				t.Errorf("the message that waited: %+v", r)
			}
		})
	}
}

// TestInterruptKeepsWhatWasSaid: on the native engine the next request has the part of the answer that arrived.
func TestInterruptKeepsWhatWasSaid(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{"began": "It is a long", "silent": ""} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			asked, hold := make(chan struct{}), make(chan struct{})
			defer close(hold)
			if said != "" {
				api.Reply(anthropicapi.Reply{Text: said, ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}})
			}
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
				close(asked)
				return anthropicapi.Reply{Text: "late", Hold: hold}
			})
			first := w.chat("tell me a story")
			<-asked
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "stopped"} })
			if r := w.run("chat", "--interrupt", "stop"); r.out != "stopped\n" {
				t.Errorf("%+v", r)
			}
			if r := <-first.ended; r.status != 130 {
				t.Errorf("%+v", r)
			}
			r := lastRequest(t, api)
			if n := occurrences(r, "tell me a story"); n != 1 || said != "" && occurrences(r, said) != 1 {
				t.Errorf("the next request: %+v", r.Messages)
			}
			if got := occurrences(r, "NOTE: A turn was cut off (stopped by a new message)"); got != 1 && said == "" {
				t.Errorf("%d notes: %+v", got, r.Messages)
			}
		})
	}
}

// TestCutOffTurnIsReportedOnce: the turn after one that was ended by SIGTERM reports its message, and the one after that does not.
func TestCutOffTurnIsReportedOnce(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	asked, hold := make(chan struct{}), make(chan struct{})
	defer close(hold)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		close(asked)
		return anthropicapi.Reply{Text: "late", Hold: hold}
	})
	first := w.chat("feed\n\nthe cat")
	<-asked
	first.cancel(signalled(syscall.SIGTERM))
	if r := <-first.ended; r.status != 143 {
		t.Errorf("%+v", r)
	}
	if out := w.must("status"); !strings.Contains(out, "cut-off\t") {
		t.Errorf("status:\n%s", out)
	}
	reports := func() int { return strings.Count(lastRequest(t, api).LastUserText(), "NOTE: A turn was cut off") }
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Well."} })
	api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
	if r := w.run("chat", "hello"); r.status != 1 || reports() != 1 {
		t.Errorf("%+v, reported %d times", r, reports())
	}
	w.must("update", "add", "oil broke 75")
	w.must("chat", "hello again") // the turn before was not answered
	if text := lastRequest(t, api).LastUserText(); reports() != 1 || !strings.HasSuffix(text, "\n\nhello again\n") {
		t.Errorf("reported %d times: %s", reports(), text)
	} else {
		shows(t, text, "NOTE: A turn was cut off", "feed\n  \n  the cat\n\nRECENT BACKGROUND UPDATES", "oil broke 75\n\nhello again")
		if strings.Contains(text, "[system]") {
			t.Errorf("a tag that is not at the beginning: %s", text)
		}
	}
	w.must("chat", "and now?")
	if n := reports(); n != 0 || len(w.queue()) != 0 {
		t.Errorf("reported again, %d messages are left", len(w.queue()))
	}
}

// TestClearDuringATurn: a conversation can be cleared while a turn of it is in progress, and the next turn begins a new one.
func TestClearDuringATurn(t *testing.T) {
	t.Parallel()
	w, asked, hold := slow(t)
	first := w.chat("one")
	<-asked
	h, err := w.deps(nil, io.Discard, io.Discard).Home()
	if err == nil {
		err = h.Turns(true).Clear(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	close(hold)
	<-first.ended
	if r := w.run("session", "id", "main"); r.status == 0 {
		t.Errorf("main is %q after the turn", r.out)
	}
	w.must("chat", "two")
	if out := w.must("session", "history", "main"); strings.Contains(out, "cleared") || !strings.Contains(out, "created") {
		t.Errorf("the new session's history:\n%s", out)
	}
}
