package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestReplayOfClaude: of a run of the claude command, what ollim gave it is compared, and the output says so.
func TestReplayOfClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	h := newFixture(t)
	h.ok("config", "set", "delivery.command", "true")
	h.routine("disk", "--isolated", "--update-main-session", "freely", "--allowed-tools", "Read(./**)")
	file := filepath.Join(h.data, "routines", "open.md")
	h.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if strings.Contains(string(q.Raw), "Look around.") && len(q.ToolResults()) == 0 {
			return anthropicapi.Use("Read", map[string]string{"file_path": file})
		}
		return anthropicapi.Reply{Text: "Done."}
	})
	h.ok("fire", "disk")
	replay := func(want int, wants ...string) {
		t.Helper()
		out, err := h.cmd("run", "replay", "disk").CombinedOutput()
		if got := status(err); got != want {
			t.Errorf("exit status %d, want %d: %s", got, want, out)
		}
		joined := strings.Join(strings.Fields(string(out)), " ")
		for _, text := range wants {
			if !strings.Contains(joined, text) {
				t.Errorf("no %q in %s", text, out)
			}
		}
	}
	const compared = "what ollim itself gave claude-code (model, system prompt, tools of ollim, allowed tools, prompt)"
	replay(0, "same: "+compared, "1 decision about tools")
	routine := filepath.Join("routines", "disk.md")
	page := h.readPage(filepath.Join(h.data, routine))
	h.write(routine, strings.Replace(page, "Look around.", "Look elsewhere.", 1))
	replay(1, "differs: prompt, line ", "then: Look around.", "now: Look elsewhere.", compared)
	h.write(routine, strings.Replace(page, "update-main-session: freely", "update-main-session: always", 1))
	replay(1, "differs: system, line ", "`report_updates` is mandatory")
	h.write(routine, strings.Replace(page, "---\n", "---\nallow-ping: false\n", 1))
	replay(1, "differs: system, line ")
}
