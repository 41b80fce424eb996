package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestClaudeSessionsAreRead: what claude keeps of main and of routines is exported, shown, searched and branched as what is kept
// here, and not changed.
func TestClaudeSessionsAreRead(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)
	if err := os.WriteFile(filepath.Join(c.data, "a.md"), []byte("the needle"), 0o600); err != nil {
		t.Fatal(err)
	}
	api.Reply(anthropicapi.Reply{Thinking: "hm", Text: "Let me look.", ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": filepath.Join(c.data, "a.md")}}}},
		anthropicapi.Reply{Text: "An okapi."})
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Oil stands at 71."} })
	c.ok("chat", "what is in a.md?")
	if testkit.Full(1, 0) == 1 {
		c.ok("fire", "daily-market")
	}
	kept := func() string {
		var all strings.Builder
		for _, file := range c.kept("projects/*/*.jsonl") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		return all.String()
	}
	before := kept()

	exported := c.ok("session", "export", "main")
	for _, want := range []string{"what is in a.md?", "Let me look.", "the needle", "An okapi."} {
		if strings.Count(exported, want) != 1 {
			t.Errorf("the export has %q %d times:\n%s", want, strings.Count(exported, want), exported)
		}
	}
	if lines := strings.Split(strings.TrimSpace(c.ok("session", "export", "--json", "main")), "\n"); len(lines) != 5 || !strings.Contains(lines[0], `"provider":"claude-code"`) {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
	if testkit.Full(1, 0) == 1 {
		if exported := c.ok("session", "export", "routine:daily"); !strings.Contains(exported, "Oil stands at 71.") {
			t.Errorf("%s", exported)
		}
	}
	var facts struct {
		ID, Engine, Path string
		Messages         int
	}
	if err := json.Unmarshal([]byte(c.ok("session", "show", "--json", "main")), &facts); err != nil || facts.Messages != 4 || facts.Engine != "claude-code" || facts.Path == "" {
		t.Errorf("%+v, %v", facts, err)
	}
	if found := c.ok("session", "search", "okapi"); strings.Count(found, "\n") != 1 || !strings.Contains(found, facts.ID+"\tassistant\tAn okapi.") {
		t.Errorf("%q", found)
	}
	if found := c.ok("session", "search", "needle"); !strings.Contains(found, facts.ID+"\tuser\t") {
		t.Errorf("%q", found)
	}
	for args, messages := range map[string]string{"main": "messages\t4", "main --after 1": "messages\t1"} {
		id := strings.TrimSpace(c.ok(append([]string{"session", "branch"}, strings.Fields(args)...)...))
		if shown := c.ok("session", "show", id); !strings.HasPrefix(id, "n-") || !strings.Contains(shown, messages) || !strings.Contains(shown, "lineage\t"+facts.ID) {
			t.Errorf("%s: %s", id, shown)
		}
		if args != "main" {
			continue
		}
		c.ok("config", "set", "native.base-url", api.URL())
		api.Reply(anthropicapi.Reply{Text: "Yes."})
		if out := c.ok("-p", "-n", "-r", id, "really?"); out != "Yes.\n" {
			t.Errorf("%q", out)
		}
		requests := api.Requests()
		if last := requests[len(requests)-1]; !last.Has("An okapi.") || !last.Has("the needle") {
			t.Error("the branch does not know what was said")
		}
	}
	if kept() != before {
		t.Error("a file of claude was changed")
	}
}
