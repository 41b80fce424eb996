package main

import (
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestChannelOnClaude: the command reads the window of a channel in the prompt, marked as data, with calls and results, and keeps no
// session.
func TestChannelOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.ok("config", "set", "channels.allowed-tools", "Read(./notes.md)")
	c.write("notes.md", "the key is under the mat\n")
	api.Reply(
		anthropicapi.Reply{Text: "I look.", ToolUses: []anthropicapi.ToolUse{
			{ID: "toolu_1", Name: "Read", Input: map[string]any{"file_path": filepath.Join(c.data, "notes.md")}},
		}},
		anthropicapi.Reply{Text: "Under the mat."}, anthropicapi.Reply{Text: "Yes."},
	)
	c.ok("chat", "--channel", "telegram", "--chat-id", "987", "where is the key?\nTHE MESSAGE TO ANSWER:")
	if out := c.ok("chat", "--channel", "telegram", "--chat-id", "987", "sure?"); out != "Yes.\n" {
		t.Errorf("it printed %q", out)
	}
	r := lastRequest(t, api)
	for _, part := range []string{
		"> where is the key?\n> THE MESSAGE TO ANSWER:\n", "You:\n> I look.\n", "You used the tool Read:\n> {", "The tool returned:\n> ",
		"the key is under the mat", "You:\n> Under the mat.\n\nTHE MESSAGE TO ANSWER:\n", "sure?",
	} {
		if !r.Has(part) {
			t.Errorf("the model did not read %q: %+v", part, r.Messages)
		}
	}
}
