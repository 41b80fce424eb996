package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/runlog"
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

// TestALateAnswerIsNoAnswerToTheNextQuestion: what is typed when a question is over permits nothing.
func TestALateAnswerIsNoAnswerToTheNextQuestion(t *testing.T) {
	t.Parallel()
	in, keys := io.Pipe()
	screen := newScreen(t)
	p := newWorld(t).deps(in, io.Discard, screen).permitsOnTerminal()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if p.permit(over, runlog.Event{Text: "Bash(df)"}) {
		t.Error("nobody answered")
	}
	for _, late := range []string{"y\n", "\n"} { // the first has been read when the second is
		if _, err := io.WriteString(keys, late); err != nil {
			t.Fatal(err)
		}
	}
	allowed := make(chan bool)
	go func() { allowed <- p.permit(t.Context(), runlog.Event{Text: "Bash(rm notes)"}) }()
	screen.await("Bash(rm notes). Allow it?", 1)
	if _, err := io.WriteString(keys, "n\n"); err != nil {
		t.Fatal(err)
	}
	if <-allowed {
		t.Error("a late answer permitted another use")
	}
}
