package claudecode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// ask queues the use of a tool and returns its number, from which its id is made.
func (w *world) ask(tool string, input map[string]any) string {
	w.asked++
	id := fmt.Sprintf("use_%d", w.asked)
	w.api.Reply(anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: id, Name: tool, Input: input}}})
	return id
}

// TestWhatTheHookAllows needs no list of allowed tools: in directories outside the working directory, with commands, on the web.
func TestWhatTheHookAllows(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	// Whoever runs this may have a network; the test is not to use it.
	w.engine.Env = append(w.engine.Env, "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1")
	away := t.TempDir()
	w.place(away, "a.md", "PUBLIC")
	w.place(away, "hidden/b.md", "HIDDEN")
	git(t, w.root, "init", "--quiet")
	git(t, w.root, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "FIRST")
	at := func(name string) string { return filepath.Join(away, name) }
	wants := map[string]string{} // what the result says; "" is a refusal
	wants[w.ask("Read", map[string]any{"file_path": at("a.md")})] = "PUBLIC"
	wants[w.ask("Edit", map[string]any{"file_path": at("a.md"), "old_string": "PUBLIC", "new_string": "PUBLISHED"})] = "updated"
	wants[w.ask("Write", map[string]any{"file_path": at("new/deep/c.txt"), "content": "mine"})] = "created"
	wants[w.ask("Glob", map[string]any{"pattern": "*.md", "path": at("new")})] = "No files"
	wants[w.ask("Grep", map[string]any{"pattern": "PUBL", "path": at("a.md"), "output_mode": "content"})] = "PUBLISHED"
	wants[w.ask("Read", map[string]any{"file_path": at("hidden/b.md")})] = ""
	wants[w.ask("Write", map[string]any{"file_path": at("hidden/b.md"), "content": "x"})] = ""
	wants[w.ask("Read", map[string]any{"file_path": "/etc/passwd"})] = ""
	wants[w.ask("Write", map[string]any{"file_path": filepath.Join(w.root, "notes/n.txt"), "content": "x"})] = "created"
	wants[w.ask("Write", map[string]any{"file_path": filepath.Join(w.root, "n.txt"), "content": "x"})] = ""
	wants[w.ask("Bash", map[string]any{"command": "git log --oneline", "description": "look"})] = "FIRST"
	wants[w.ask("Bash", map[string]any{"command": "touch " + at("touched"), "description": "touch"})] = "no output"
	wants[w.ask("Bash", map[string]any{"command": "git status", "description": "look"})] = ""
	web := w.ask("WebFetch", map[string]any{"url": "https://example.com/", "prompt": "read"})
	wants[w.ask("WebFetch", map[string]any{"url": "https://example.org/", "prompt": "read"})] = ""
	w.api.Reply(anthropicapi.Reply{Text: "done"})

	scope := "(" + away + "/**)"
	if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{Dirs: []policy.Root{{Dir: away, Writable: true}}, Protected: []string{at("hidden")}}},
		"Read"+scope, "Edit"+scope, "Write"+scope, "Glob"+scope, "Grep"+scope, "Write(notes/**)",
		"Bash(git log *)", "Bash(touch *)", "WebFetch(domain:example.com)"); err != nil {
		t.Fatal(err)
	}
	results := w.results()
	for id, want := range wants {
		got := results[id]
		t.Logf("%s %.200q", id, got.ResultText)
		if got.IsError != (want == "") || !strings.Contains(got.ResultText, want) {
			t.Errorf("%s: error %v, %.300q; want %q", id, got.IsError, got.ResultText, want)
		}
	}
	// Before anything is fetched the command asks its maker about the name, which it cannot here: the hook was passed.
	if got := results[web].ResultText; !strings.Contains(got, "Unable to verify") {
		t.Errorf("%q", got)
	}
	if text, _ := os.ReadFile(at("hidden/b.md")); string(text) != "HIDDEN" {
		t.Errorf("what is protected became %q", text)
	}
}

// TestHookLost in the middle of a run: every tool is denied from then on, and the run does not end as if nothing was.
func TestHookLost(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, c := range map[string]struct {
		breaks, mends int // before the request of this number
		silent        bool
		want          string
	}{
		"for good":   {breaks: 2, want: "denied without a verdict"},
		"for a time": {breaks: 2, mends: 3},
		"silently":   {breaks: 2, silent: true, want: "without a verdict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !c.silent { // TestHookThatFails of the program shows what is lost for good
				anthropicapi.InCI(t)
			}
			w := newWorld(t)
			file := w.place(w.root, "a.md", "PUBLIC")
			rules, gone, silent := filepath.Join(w.dir, "rules.json"), filepath.Join(w.dir, "gone"), filepath.Join(w.dir, "silent")
			w.api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
				switch n := len(w.api.Requests()); {
				case n == c.breaks && c.silent:
					w.place(w.dir, filepath.Base(silent), "")
				case n == c.breaks:
					w.move(rules, gone)
				case n == c.mends:
					w.move(gone, rules)
				case n > 3:
					return anthropicapi.Reply{Text: "done"}
				}
				return anthropicapi.Use("Read", map[string]any{"file_path": file})
			})
			_, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "Read(./**.md)")
			t.Log(err)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestAskedToWaitLong: the command gives up at once, and does not say how long. The gateway knows it.
func TestAskedToWaitLong(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, want := range map[string]time.Duration{"through the gateway": time.Hour, "without it": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.engine.Direct = name == "without it"
			w.api.Reply(anthropicapi.Reply{Status: 429, RetryAfter: "3600"})
			_, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "Read(./**.md)")
			if overloaded, ok := errors.AsType[*engine.Overloaded](err); !ok || overloaded.After != want {
				t.Errorf("%v", err)
			}
		})
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("git: %v: %s", err, out)
	}
}
