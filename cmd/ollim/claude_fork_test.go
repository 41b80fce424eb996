package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestForkOnClaude: an interactive fork branches main, goes on and is saved; a reply to the message of an isolated run branches that
// run's session. The fork has main's system prompt and tools, byte for byte.
func TestForkOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	text := func(s string) anthropicapi.Reply { return anthropicapi.Reply{Text: s} }
	last := func() anthropicapi.Request { all := api.Requests(); return all[len(all)-1] }
	prefix := func(r anthropicapi.Request) string {
		var body struct {
			System []struct{ Text string }
			Tools  json.RawMessage
		}
		if err := json.Unmarshal(r.Raw, &body); err != nil {
			t.Fatal(err)
		}
		var system []string
		for _, part := range body.System {
			if !strings.HasPrefix(part.Text, "x-anthropic-billing-header") { // of each request
				system = append(system, part.Text)
			}
		}
		return strings.Join(system, "\n") + "\n" + string(body.Tools)
	}
	api.Reply(text("Hello."))
	c.ok("chat", "my cat is called Momo")
	main, id := last(), c.read("state/sessions.json")

	api.Reply(text("By train?"))
	c.ok("fork", "start", "the trip")
	fork := last()
	if !fork.Has("Momo") || !fork.Has("[fork-started]") || prefix(fork) != prefix(main) {
		t.Errorf("the fork read %s\nmain read %s", fork.Raw, main.Raw)
	}
	api.Reply(text("Booked."))
	c.ok("chat", "yes")
	if r := last(); !r.Has("By train?") || !r.Has("Momo") {
		t.Errorf("the second turn read %s", r.Raw)
	}
	c.ok("fork", "save")
	if c.read("state/sessions.json") == id {
		t.Error("main is not the fork")
	}
	api.Reply(text("Yes."))
	c.ok("chat", "is it booked?")
	if !last().Has("Booked.") {
		t.Errorf("main read %s", last().Raw)
	}

	c.write("deliver.sh", "cat >> delivered\n")
	c.ok("config", "set", "delivery.command", "sh", "deliver.sh")
	c.ok("routine", "add", "watch", "--cron", "@yearly", "--background", "--isolated", "--update-main-session", "freely", "Watch oil.")
	api.Reply(anthropicapi.Use("mcp__ollim__ping_user", map[string]string{"message": "Oil broke 75."}), text("watched"))
	c.ok("fire", "watch")
	message := filepath.Base(c.last()) + ".1"
	api.Reply(text("Half is sold."))
	if out := c.ok("fork", "reply", message, "sell half"); out != "Half is sold.\n" {
		t.Errorf("reply printed %q", out)
	}
	if r := last(); !r.Has("Watch oil.") || !r.Has("sell half") || r.Has("Momo") {
		t.Errorf("the reply read %s", r.Raw)
	}
	api.Reply(anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "half of it is sold"}), text("Reported."))
	c.ok("fork", "report")
	if got := c.ok("update", "list"); !strings.Contains(got, "half of it is sold") {
		t.Errorf("updates %q", got)
	}
	c.fails(66, "fork", "status")
}
