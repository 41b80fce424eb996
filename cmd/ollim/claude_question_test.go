package main

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// A run on the real command asks by ollim's server of tools, ends as waiting without being reminded of its report, survives a reboot of
// the machine, and goes on in the same session of claude with the answer.
func TestQuestionOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.ok("config", "set", "delivery.command", "true")
	c.write("routines/paint.md", "---\nid: paint\ncron: \"0 0 1 1 *\"\nbackground: true\nisolated: true\nupdate-main-session: always\n---\nPaint the wall.\n")
	api.Reply(
		anthropicapi.Use("mcp__ollim__ask_owner", map[string]any{"question": "Which color?", "choices": []string{"red", "green"}}),
		anthropicapi.Reply{Text: "I have asked."},
	)
	c.ok("fire", "paint")
	run := c.latest("paint")
	if run.Outcome != "waiting" || run.After == "" {
		t.Fatalf("%+v", run)
	}
	c.reboot(run.ID)
	api.Reply(
		anthropicapi.Use("mcp__ollim__report_updates", map[string]any{"message": "painted it green"}),
		anthropicapi.Reply{Text: "Done."},
	)
	c.ok("answer", "-w", "paint", "2")
	requests := api.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Raw), "Paint the wall.") || !strings.Contains(string(last.Raw), "- the answer:\\n  green") {
		t.Errorf("the model was asked %s", last.Raw)
	}
	if got := c.latest("paint"); got.Outcome != "ok" || got.ID != run.ID || got.After != run.After || got.Continued != 1 || len(requests) != 4 {
		t.Errorf("%+v became %+v, in %d requests", run, got, len(requests))
	}
	c.fails(65, "answer", run.ID, "red")
}
