package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestBoundaryOfSubagents: a subagent reaches no more than the agent that sent it, and the record shows what it used. What the owner
// says is no command of the engine.
func TestBoundaryOfSubagents(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	h := newFixture(t)
	public := read("routines/open.md", allowed)
	public.says = "PUBLIC"
	elsewhere := attempt{tool: "Agent", input: map[string]any{"description": "look", "prompt": "look", "isolation": "worktree"}, want: denied}
	attempts := []attempt{
		{tool: "Agent", input: map[string]any{"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}, want: allowed, says: "That was all I saw."},
		public, read("config.yaml", denied), read("state/notes.md", denied), read("/etc/passwd", denied),
		bash("cat config.yaml", denied), bash("ollim config set engine script:x", denied), bash("ollim help", allowed),
		write("gates/new.sh", denied), write("tasks/new.md", allowed), elsewhere,
	}
	for i, a := range attempts {
		h.api.Reply(anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: fmt.Sprintf("use_%d", i), Name: a.tool, Input: a.input}}})
	}
	h.api.Reply(anthropicapi.Reply{Text: "That was all I saw."}, anthropicapi.Reply{Text: "Nothing new."})
	before := h.contents()
	if got := h.ok("chat", "/compact"); !strings.Contains(got, "Nothing new.") || strings.Contains(got, "all I saw") {
		t.Errorf("printed %q", got)
	}
	if q := h.api.Requests()[0]; q.IsCompaction() || !strings.Contains(q.LastUserText(), "/compact") {
		t.Errorf("chat arrived as %q", q.LastUserText())
	}
	verdicts, results := h.verdicts(), map[string]anthropicapi.Block{}
	for _, q := range h.api.Requests() {
		if bytes.Contains(q.Raw, []byte(secret)) {
			t.Errorf("a request holds what is hidden: %.600q", fmt.Sprint(q.ToolResults()))
		}
		for _, r := range q.ToolResults() {
			results[r.ToolUseID] = r
		}
	}
	for i, a := range attempts {
		id := fmt.Sprintf("use_%d", i)
		a.check(t, fmt.Sprintf("%s %v", a.tool, a.input), results[id], verdicts[id])
	}
	for path, text := range h.contents() {
		if before[path] != text {
			t.Errorf("%s was changed: %q", path, text)
		}
	}
	if _, err := os.Stat(filepath.Join(h.data, "gates/new.sh")); err == nil {
		t.Error("an executable of the owner's was made")
	}
}
