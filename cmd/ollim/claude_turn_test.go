package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// lastRequest is the last request that the model got.
func lastRequest(t *testing.T, api *anthropicapi.Server) anthropicapi.Request {
	t.Helper()
	all := api.Requests()
	if len(all) == 0 {
		t.Fatal("the model was asked nothing")
	}
	return all[len(all)-1]
}

// speaksAlone checks that the last prompt, which begins like this, shares its message with nothing but the command's own reminders.
func speaksAlone(t *testing.T, r anthropicapi.Request, begins string) {
	t.Helper()
	for _, m := range slices.Backward(r.Messages) {
		var texts []string
		for _, b := range m.Content {
			if !strings.HasPrefix(b.Text, "<system-reminder>") && b.Type != "tool_result" { // 2.1.330 does not close a turn that failed after a tool
				texts = append(texts, b.Text)
			}
		}
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(text, begins) }) {
			continue
		}
		if m.Role != "user" || len(texts) != 1 {
			t.Errorf("the last prompt stands in %q of %+v", texts, m)
		}
		return
	}
	t.Errorf("no message has a text that begins with %q", begins)
}

const (
	look     = "---\nid: look\ncron: \"0 9 * * *\"\n---\nLook around.\n"
	lookFork = "---\nid: look\ncron: \"0 9 * * *\"\nbackground: true\nallow-ping: false\nupdate-main-session: freely\n---\nLook around.\n"
)

// TestFailedTurnOnClaude: what a turn said that failed before any answer is not said to the model by the next one, in the session
// or in a fork of it, whether the session had begun or not. The session keeps its id. TestMainConversationOnClaude shows the fork of
// one that had begun.
func TestFailedTurnOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for _, tc := range []struct {
		name, job, begins string
		first             bool
	}{{"main", look, "[routine:look]", false}, {"main first", look, "[routine:look]", true}, {"fork first", lookFork, "[routine-bg:look]", true}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, api := withClaude(t)
			c.write("routines/look.md", tc.job)
			c.ok("updates", "add", "oil broke 75")
			if !tc.first {
				c.ok("chat", "hello")
				c.ok("updates", "add", "oil broke 76")
			}
			api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
			c.fails(1, "chat", "Send the invoice to Bob")
			main := c.ok("session", "id", "main")
			c.ok("fire", "look")
			r := lastRequest(t, api)
			if r.Has("invoice") {
				t.Error("the routine says what the owner said")
			}
			if tc.first == r.Has("hello") {
				t.Error("the routine does not know what was said before")
			}
			speaksAlone(t, r, tc.begins)
			api.Reply(anthropicapi.Reply{Text: "well"})
			c.ok("chat", "and now?")
			r = lastRequest(t, api)
			if r.Has("invoice") || strings.Count(string(r.Raw), "oil broke 75") != 1 || tc.first == r.Has("hello") {
				t.Errorf("the next turn says %s", r.Raw)
			}
			if now := c.ok("session", "id", "main"); now != main {
				t.Errorf("main is %s, was %s", now, main)
			}
		})
	}
}

// TestForkOfARunningTurnOnClaude: a fork that starts while main waits for the model, in its first turn or a later one, reads nothing
// of that turn. TestMainConversationOnClaude shows it after a tool.
func TestForkOfARunningTurnOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, first := range map[string]bool{"first turn": true, "later turn": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, api := withClaude(t)
			c.write("routines/look.md", lookFork)
			if !first {
				c.ok("chat", "my cat is called Momo")
			}
			asked := len(api.Requests()) + 1
			hold := make(chan struct{})
			api.Reply(anthropicapi.Reply{Text: "sent", Hold: hold})
			turn := c.cmd("chat", "Send the invoice to Bob")
			if err := turn.Start(); err != nil {
				t.Fatal(err)
			}
			api.WaitRequests(asked, patience)
			c.ok("fire", "look")
			fork := lastRequest(t, api)
			close(hold)
			if err := turn.Wait(); err != nil {
				t.Error(err)
			}
			if fork.Has("invoice") || first == fork.Has("Momo") || fork.Has("session was lost") {
				t.Errorf("the fork reads %s", fork.Raw)
			}
			speaksAlone(t, fork, "[routine-bg:look]")
			c.ok("chat", "and now?")
			if r := lastRequest(t, api); !r.Has("invoice") || !r.Has("sent") {
				t.Error("main lost its turn")
			}
		})
	}
}

// TestCompactAfterAFailedTurnOnClaude: a compaction does not sum up a request that failed.
func TestCompactAfterAFailedTurnOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.ok("chat", "hello")
	c.ok("chat", "hello again")
	api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
	c.fails(1, "chat", "Send the invoice to Bob")
	c.ok("session", "compact", "main", "keep all")
	if r := lastRequest(t, api); r.Has("invoice") || !r.IsCompaction() {
		t.Error("the failed request is summed up")
	}
	api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
	c.fails(1, "chat", "Send the invoice to Bob")
	c.ok("chat", "and now?")
	if r := lastRequest(t, api); r.Has("invoice") || !r.Has("keep all") {
		t.Errorf("the session does not go on from its summary alone: %s", r.Raw)
	}
}
