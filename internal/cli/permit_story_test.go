package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// glass is what a terminal shows.
type glass struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

// await waits until the terminal shows a text n times.
func (g *glass) await(t *testing.T, text string, n int) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		shown := g.text.String()
		g.mu.Unlock()
		if strings.Count(shown, text) >= n {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the terminal does not show %q %d times:\n%s", text, n, shown)
		}
	}
}

// TestPromptAsksForPermission: a command that no pattern allows is asked about at the prompt: once, always, and not at all.
func TestPromptAsksForPermission(t *testing.T) {
	w, api := newNativeWorld(t)
	w.write("notes.txt", "seen\n")
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if results := r.ToolResults(); len(results) > 0 {
			return anthropicapi.Reply{Text: "<" + strings.TrimSpace(results[0].ResultText) + ">"}
		}
		return anthropicapi.Use("Bash", map[string]string{"command": "cat notes.txt"})
	})
	in, keys := io.Pipe()
	screen := &glass{}
	d := w.deps(in, screen, screen)
	d.Sleep = sleep
	h, err := d.Home()
	if err != nil {
		t.Fatal(err)
	}
	l, s := newChatLoop(d, h, chatOptions{permissions: "default"}, in, screen)
	ended := make(chan error, 1)
	go func() {
		ended <- l.run(t.Context())
		s.end()
	}()
	enter := func(line string) {
		if _, err := io.WriteString(keys, line+"\r"); err != nil {
			t.Error(err)
		}
	}
	const question = "The agent wants to use Bash(cat notes.txt)."
	enter("look")
	screen.await(t, question, 1)
	enter("perhaps")
	screen.await(t, question, 2)
	enter("n")
	screen.await(t, "<Bash: the owner said no>", 1)
	enter("again")
	screen.await(t, question, 3)
	enter("a")
	screen.await(t, "<seen>", 1)
	enter("and again")
	screen.await(t, "<seen>", 2)
	enter("/permissions dontAsk")
	screen.await(t, "dontAsk", 2)
	enter("once more")
	screen.await(t, "matches none of the allowed patterns", 1)
	enter("exit")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	screen.mu.Lock()
	defer screen.mu.Unlock()
	if got := strings.Count(screen.text.String(), question); got != 3 {
		t.Errorf("asked %d times:\n%s", got, screen.text.String())
	}
}
