package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestOwnersClaude registers ollim in the owner's own claude command, as the README says, and lets the model use the owner's tools.
func TestOwnersClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	claude := anthropicapi.Claude(t)
	c, native := withNative(t)
	api := anthropicapi.New(t)
	env := append(anthropicapi.ClaudeEnv(t, api), "ENABLE_TOOL_SEARCH=false", "MCP_CONNECTION_NONBLOCKING=0", "MCP_TIMEOUT=120000",
		"OLLIM_DATA_DIR="+c.data)
	work := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), claude, args...)
		cmd.Env, cmd.Dir, cmd.Stdin = env, work, strings.NewReader("What is going on?")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("claude %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("mcp", "add", "ollim", "--", program, "mcp", "serve")
	if list := run("mcp", "list"); !strings.Contains(list, "Connected") {
		t.Errorf("registered: %s", list)
	}
	c.ok("routine", "add", "daily", "--id", "daily", "--cron", "0 9 * * *", "--background", "Look around.")
	c.ok("update", "add", "oil broke 75")
	native.Reply(anthropicapi.Reply{Text: "All is quiet."})
	api.Reply(
		anthropicapi.Use("mcp__ollim__status", map[string]any{}),
		anthropicapi.Use("mcp__ollim__list_updates", map[string]any{}),
		anthropicapi.Use("mcp__ollim__fire", map[string]string{"job": "daily"}),
		anthropicapi.Use("mcp__ollim__fire", map[string]string{"job": "nightly"}),
		anthropicapi.Use("mcp__ollim__add_task", map[string]any{"text": "sell oil", "priority": "A"}),
		anthropicapi.Reply{Text: "Nothing special."})
	if said := run("-p", "--model", "claude-opus-4-8", "--tools", "", "--permission-mode", "dontAsk", "--allowedTools", "mcp__ollim"); said != "Nothing special.\n" {
		t.Errorf("claude said %q", said)
	}
	requests := api.Requests()
	if offered := requests[0].ToolNames(); !slices.Contains(offered, "mcp__ollim__answer") || slices.Contains(offered, "mcp__ollim__compact_session") {
		t.Errorf("offered: %q", offered)
	}
	var results []anthropicapi.Block
	for _, q := range requests {
		results = append(results, q.ToolResults()...)
	}
	if len(results) != 5 {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	for i, want := range []string{`"updates":1`, "oil broke 75", `"text":"All is quiet."`, `no job "nightly"`, "1"} {
		if got := results[i]; !strings.Contains(got.ResultText, want) || got.IsError != (i == 3) {
			t.Errorf("use %d: %+v, want %q", i, got, want)
		}
	}
	if tasks := c.ok("task", "list"); tasks != "1\tA\t\tsell oil\n" {
		t.Errorf("tasks: %q", tasks)
	}
	if leftover := c.runs(); len(leftover) != 1 {
		t.Errorf("runs: %q", leftover)
	}
}
