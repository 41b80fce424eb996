package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestCompactTranscript: a conversation of no name is compacted by its id or its file, and the new one is what goes on.
func TestCompactTranscript(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Text: "AAPL is at 210."})
	c.ok("-p", "-n", "how is AAPL?")
	first, _, _ := strings.Cut(c.ok("session", "list", "--all"), "\t")

	api.Reply(anthropicapi.Reply{Text: "AAPL was 210."})
	second := strings.TrimSpace(c.ok("session", "compact", first[:6], "keep:", "AAPL"))
	if !strings.HasPrefix(second, "n-") || second == first {
		t.Fatalf("%q became %q", first, second)
	}
	if show := c.ok("session", "show", second); !strings.Contains(show, "\nlineage\t"+first+"\n") {
		t.Error(show)
	}
	if n := len(c.lines(first)); n != 3 {
		t.Errorf("the old transcript has %d lines", n)
	}
	api.Reply(anthropicapi.Reply{Text: "still 210"})
	c.ok("-r", second, "-n", "and now?")
	requests := api.Requests()
	if last := requests[len(requests)-1]; !last.Has("AAPL was 210.") || last.Has("how is AAPL?") {
		t.Errorf("the last question has %v", last.Messages)
	}
	if r := c.ok("run", "list"); strings.Count(r, "\tok\t") != 3 || !strings.Contains(r, "\t"+first+"\t") {
		t.Error(r)
	}
	if history := c.ok("session", "history"); history != "" {
		t.Error(history)
	}

	// by its file
	api.Reply(anthropicapi.Reply{Text: "AAPL."})
	_, path, _ := strings.Cut(c.ok("session", "show", second), "\npath\t")
	third := strings.TrimSpace(c.ok("session", "compact", strings.TrimSpace(path), "keep: AAPL"))
	if show := c.ok("session", "show", third); !strings.Contains(show, "\nlineage\t"+second+" "+first+"\n") {
		t.Error(show)
	}

	// what fails leaves all as it was
	before := c.ok("session", "list", "--all")
	api.Reply(anthropicapi.Reply{Status: 400, Message: "bad weather"})
	c.complains(1, "bad weather", "session", "compact", third, "all")
	if after := c.ok("session", "list", "--all"); after != before {
		t.Errorf("%s\nbefore\n%s", after, before)
	}
	c.complains(66, `no session "n-zzz"`, "session", "compact", "n-zzz", "all")
}

// TestCompactByID: the id of the session that main continues with means main, so that main continues with the summary.
func TestCompactByID(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Text: "good evening"})
	c.ok("chat", "hello there")
	first := strings.TrimSpace(c.ok("session", "id", "main"))
	api.Reply(anthropicapi.Reply{Text: "they said hello"})
	second := strings.TrimSpace(c.ok("session", "compact", first, "all"))
	if now := strings.TrimSpace(c.ok("session", "id", "main")); now != second || now == first {
		t.Errorf("main is %q, compacted %q to %q", now, first, second)
	}
	if history := c.ok("session", "history", "main"); !strings.Contains(history, "compacted\t"+second+"\t"+first) {
		t.Error(history)
	}
	c.ok("session", "rm", first)
	if show := c.ok("session", "show", "main"); !strings.Contains(show, "\nlineage\t"+first+"\n") {
		t.Error(show)
	}
}

// TestCompactForeign: what another engine holds is not ours to compact.
func TestCompactForeign(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("play.yaml", "turns:\n  - - text: hello\n")
	c.ok("config", "set", "engine", "script:play.yaml")
	c.ok("-p", "-n", "hi")
	id, _, _ := strings.Cut(c.ok("session", "list", "--all"), "\t")
	c.complains(78, "only for sessions of the native engine: session of another engine: "+id+" belongs to the script engine", "session", "compact", id, "all")
	c.complains(64, "the instructions are empty", "session", "compact", id, " ")
}

// TestCompactWithoutTheFolder: a transcript can be compacted when the directory that it is about was removed, and stays with it.
func TestCompactWithoutTheFolder(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "all is kept"} })
	dir := filepath.Join(t.TempDir(), "project")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // somebody's project
		t.Fatal(err)
	}
	for _, flag := range []string{"-p", "-c"} {
		cmd := c.cmd(flag, "-n", "hi")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(c.ok("session", "list", "--all"), "\t")
	next := strings.TrimSpace(c.ok("session", "compact", id, "keep all"))
	if shown := c.ok("session", "show", next); !strings.Contains(shown, "\ncwd\t"+dir+"\n") || !strings.Contains(shown, "\nlineage\t") {
		t.Errorf("compacted to\n%s", shown)
	}
}
