package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestAskOnClaude: a question at a shell on the real command. Its conversation is kept as a transcript under the id of claude's
// session, in the directory where it was asked, and goes on there.
func TestAskOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	here := t.TempDir()
	ask := func(args ...string) string {
		t.Helper()
		cmd := c.cmd(append([]string{"-p", "-n"}, args...)...)
		cmd.Dir = here
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	if err := os.WriteFile(filepath.Join(here, "a.go"), []byte("package needle\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api.Reply(anthropicapi.Use("Read", map[string]string{"file_path": filepath.Join(here, "a.go")}),
		anthropicapi.Use("Write", map[string]string{"file_path": filepath.Join(here, "b.go"), "content": "x"}), anthropicapi.Reply{Text: "a needle"})
	if said := ask("what is in a.go?"); said != "a needle\n" {
		t.Errorf("%q", said)
	}
	requests := api.Requests()
	if results := requests[len(requests)-2].ToolResults(); len(results) != 1 || !strings.Contains(results[0].ResultText, "package needle") {
		t.Errorf("%+v", results)
	}
	if _, err := os.Stat(filepath.Join(here, "b.go")); err == nil {
		t.Error("it wrote without being allowed to")
	}
	found, _ := filepath.Glob(filepath.Join(c.data, "sessions", "--*", "*.jsonl"))
	if len(found) != 1 {
		t.Fatalf("%q", found)
	}
	text, _ := os.ReadFile(found[0])
	for _, want := range []string{`"provider":"claude-code"`, `"name":"Read"`, "package needle", `"content":"a needle"`, "what is in a.go?"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the transcript lacks %s:\n%s", want, text)
		}
	}
	api.Reply(anthropicapi.Reply{Text: "again"})
	ask("-c", "and now?")
	requests = api.Requests()
	if last := requests[len(requests)-1]; !last.Has("a needle") {
		t.Error("the session did not go on")
	}
	if again, _ := filepath.Glob(filepath.Join(c.data, "sessions", "--*", "*.jsonl")); len(again) != 1 {
		t.Errorf("%q", again)
	}
	api.Reply(anthropicapi.Reply{Text: "forked"})
	ask("-c", "--fork-session", "--tools", "", "and then?")
	requests = api.Requests()
	if last := requests[len(requests)-1]; !last.Has("a needle") || slices.ContainsFunc(last.Tools, func(t anthropicapi.Tool) bool { return t.Name == "Read" }) {
		t.Errorf("the copy did not go on without tools: %+v", last.Tools)
	}
	if all, _ := filepath.Glob(filepath.Join(c.data, "sessions", "--*", "*.jsonl")); len(all) != 2 {
		t.Errorf("%q", all)
	}
	if now, _ := os.ReadFile(found[0]); strings.Contains(string(now), "and then?") {
		t.Error("the session that was copied has changed")
	}
	if testkit.Full(1, 0) == 0 {
		return // TestUnkept of the engine shows that nothing is kept
	}
	sessions := func() []string { return c.kept("projects/*/*.jsonl") }
	before := len(sessions())
	api.Reply(anthropicapi.Reply{Text: "once"})
	ask("--no-session", "just once")
	if before == 0 || len(sessions()) != before {
		t.Errorf("%d sessions, then %d", before, len(sessions()))
	}
}

// TestShellKeysOnClaude: a question takes key and address from the shell's environment where the secrets file has none; a fire
// never does, and a missing key is said to be missing there and how to give it.
func TestShellKeysOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	env := slices.DeleteFunc(anthropicapi.ClaudeEnv(t, api), func(kv string) bool { return strings.HasPrefix(kv, "ANTHROPIC_") })
	c.ok(append([]string{"config", "set", "env"}, env...)...)
	c.write("routines/daily-market.md", daily)
	run := func(wantStatus int, args ...string) string {
		t.Helper()
		cmd := c.cmd(args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+api.URL())
		if wantStatus == 0 {
			cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=from-the-shell")
		}
		out, err := cmd.CombinedOutput()
		if got := status(err); got != wantStatus {
			t.Errorf("%q: exit %d, want %d: %s", args, got, wantStatus, out)
		}
		return string(out)
	}
	api.Reply(anthropicapi.Reply{Text: "hello"})
	if out := run(0, "-p", "-n", "hi"); out != "hello\n" {
		t.Errorf("%q", out)
	}
	requests := api.Requests()
	if got := requests[len(requests)-1].Header.Get("X-Api-Key"); got != "from-the-shell" {
		t.Errorf("key %q", got)
	}
	missing := map[string][]string{"only ask, chat and session compact": {"fire", "daily"}}
	if testkit.Full(1, 0) == 1 {
		missing["or in this environment"] = []string{"-p", "-n", "hi"}
	}
	for want, args := range missing {
		out := run(69, args...)
		for _, part := range []string{"no key or login", "no engine.ANTHROPIC_API_KEY in /", want, "hint: ollim secret set engine.ANTHROPIC_API_KEY", "export ANTHROPIC_API_KEY="} {
			if !strings.Contains(out, part) {
				t.Errorf("%q lacks %q:\n%s", args, part, out)
			}
		}
	}
}
