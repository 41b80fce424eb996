package cli

import (
	"context"
	"io"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/term"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestPromptAsksForPermission: a command that no pattern allows is asked about at the prompt: once, always, and not at all.
func TestPromptAsksForPermission(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("notes.txt", "seen\n")
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if results := r.ToolResults(); len(results) > 0 {
			return anthropicapi.Reply{Text: "<" + strings.TrimSpace(results[0].ResultText) + ">"}
		}
		return anthropicapi.Use("Bash", map[string]string{"command": "cat notes.txt"})
	})
	p := w.promptLoopWith(chatOptions{permissions: "default"})
	enter := func(line string) { p.typeIn(line + "\r") }
	const question = "The agent wants to use Bash(cat notes.txt)."
	enter("look")
	p.await(question, 1)
	enter("\x1b[200~per\r\nhaps\x1b[201~")
	p.await(question, 2)
	enter("n")
	p.await("<Bash: the owner said no>", 1)
	enter("again")
	p.await(question, 3)
	enter("a")
	p.await("<seen>", 1)
	enter("and again")
	p.await("<seen>", 2)
	enter("/permissions dontAsk")
	p.await("dontAsk", 2)
	enter("once more")
	p.await("matches none of the allowed patterns", 1)
	enter("exit")
	p.leave()
	if got := strings.Count(p.shown(), question); got != 3 {
		t.Errorf("asked %d times:\n%s", got, p.shown())
	}
}

// TestTypedBeforeAPermission: a line, or the beginning of one, that was typed before the agent asks permits nothing, and neither does
// one that was typed for a question that is over.
func TestTypedBeforeAPermission(t *testing.T) {
	t.Parallel()
	keys, terminal := testkit.Terminal(t)
	screen := newScreen(t)
	p := newWorld(t).deps(terminal, io.Discard, screen).permitsOnTerminal()
	hit := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(ctx context.Context, use string) <-chan bool {
		allowed := make(chan bool, 1)
		go func() { allowed <- p.permit(ctx, runlog.Event{Text: use}) }()
		screen.await(use+". Allow it?", 1)
		return allowed
	}
	for _, before := range []string{"y\n", "y\ny\n", "y", "always\ny"} {
		hit(before)
		use := "Bash(echo " + strconv.Quote(before) + ")"
		answer := ask(t.Context(), use)
		hit("\n")
		for strings.Count(screen.shown(), use+". Allow it?") < 2 {
			select {
			case <-screen.written:
			case allowed := <-answer:
				t.Fatalf("%q, typed before the question, was an answer: %v", before, allowed)
			}
		}
		hit("n\n")
		if <-answer {
			t.Errorf("%q permitted the use", before)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := ask(ctx, "Bash(df)")
	cancel()
	if <-over {
		t.Error("nobody answered")
	}
	hit("y\ny\n")
	answer := ask(t.Context(), "Bash(du)")
	hit("y\n")
	if !<-answer {
		t.Error("the answer is not taken")
	}
}

// TestTypedBeforeAQuestionAtThePrompt: what is being typed when the agent asks is removed, so that Enter does not permit.
func TestTypedBeforeAQuestionAtThePrompt(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.write("notes.txt", "seen\n")
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if results := r.ToolResults(); len(results) > 0 {
			return anthropicapi.Reply{Text: "<" + strings.TrimSpace(results[0].ResultText) + ">"}
		}
		asked <- struct{}{}
		<-goOn
		return anthropicapi.Use("Bash", map[string]string{"command": "cat notes.txt"})
	})
	keys, terminal := testkit.Terminal(t)
	if _, err := term.MakeRaw(int(terminal.Fd())); err != nil {
		t.Fatal(err)
	}
	p := w.promptLoopOn(terminal, keys, chatOptions{permissions: "default"})
	const question = "The agent wants to use Bash(cat notes.txt)."
	const draw = "\x0c" // the line again, when all has been read
	for n, before := range []struct{ typed, shown string }{{"y" + draw, "\x1b[2J"}, {"\x1b[200~pasted", "pasted"}, {"alw" + draw, "\x1b[2J"}} {
		p.typeIn("look\r")
		<-asked
		p.typeIn(before.typed)
		p.await(before.shown, 1+n/2)
		goOn <- struct{}{}
		p.await(question, 2*n+1)
		p.typeIn("\x1b[201~\r")
		p.await(question, 2*n+2)
		p.typeIn("n\r")
		p.await("<Bash: the owner said no>", n+1)
	}
	p.typeIn("exit\r")
	p.leave()
}
