package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// mainStory is one main conversation on the real command, in which one thing after another goes wrong. A start of the command is
// dear: each serves several tests.
type mainStory struct {
	*command
	api *anthropicapi.Server
}

// TestMainConversationOnClaude: turns that fail before and after an answer, forks beside turns that fail and that run, and a turn
// whose ollim is killed leave one conversation, whose every request begins with the same bytes.
func TestMainConversationOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	m := mainStory{c, api}
	git(t, c.data, "init", "-q")
	c.write("IDENTITY.md", "You are Rex.\n")
	c.put("agents/helper.md", "---\ndescription: Helps.\n---\nHELPER: help.\n")
	c.write("routines/look.md", lookFork)
	c.ok("routine", "add", "sub", "--id", "sub", "--cron", "0 9 * * *", "--background", "--subagent", "helper", "Look around.")
	c.ok("updates", "add", "oil broke 75")
	api.Reply(anthropicapi.Reply{Text: "Hello, owner."})
	if got := c.ok("chat", "my cat is called Momo"); got != "Hello, owner.\n" {
		t.Errorf("chat printed %q", got)
	}
	id := c.ok("session", "id", "main")
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{{"failed", m.failed}, {"failed after a tool", m.failedAfterATool}, {"fork of a running turn", m.forkOfARunningTurn}, {"orphaned", m.orphaned}} {
		t.Run(part.name, part.run)
		if now := c.ok("session", "id", "main"); now != id {
			t.Errorf("%s: main is %s, was %s", part.name, now, id)
		}
	}
	sameBeginnings(t, api.Requests())
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// failed: what a turn said that failed before any answer is not said to the model by the next one, in the session or in a fork.
func (m mainStory) failed(t *testing.T) {
	m.ok("updates", "add", "oil broke 76")
	m.api.Reply(anthropicapi.Reply{Status: 400, Message: "no"})
	m.fails(1, "chat", "Send the invoice to Bob")
	m.put("tasks/new.md", "new\n")
	m.ok("fire", "sub")
	r := lastRequest(t, m.api)
	if r.Has("invoice") || !r.Has("Momo") {
		t.Error("the fork does not know what was said before, or says what the owner said")
	}
	speaksAlone(t, r, "[routine-bg:sub]")
	git(t, m.data, "add", "tasks")
	m.api.Reply(anthropicapi.Reply{Text: "well"})
	m.ok("chat", "and now?")
	r = lastRequest(t, m.api)
	for _, update := range []string{"oil broke 75", "oil broke 76"} {
		if n := strings.Count(string(r.Raw), update); n != 1 {
			t.Errorf("the next turn says %q %d times: %s", update, n, r.Raw)
		}
	}
	if r.Has("invoice") || !r.Has("Momo") || r.Has("Look around.") {
		t.Errorf("the next turn says %s", r.Raw)
	}
}

// failedAfterATool: a turn that the model had begun stays in the session and is closed; a fork leaves it out.
func (m mainStory) failedAfterATool(t *testing.T) {
	m.api.Reply(anthropicapi.Use("mcp__ollim__list_reminders", nil), anthropicapi.Reply{Status: 400, Message: "no"})
	m.fails(1, "chat", "Water the plants")
	m.ok("fire", "look")
	if r := lastRequest(t, m.api); r.Has("the plants") || !r.Has("and now?") {
		t.Error("the fork does not begin at the last complete turn")
	}
}

// forkOfARunningTurn: a fork that starts while main waits for the model, after a tool, reads nothing of that turn and changes
// nothing of it. The turn knows what was done in the one that failed.
func (m mainStory) forkOfARunningTurn(t *testing.T) {
	hold, asked := make(chan struct{}), len(m.api.Requests())
	m.api.Reply(anthropicapi.Use("mcp__ollim__list_reminders", nil), anthropicapi.Reply{Text: "a long answer", Hold: hold})
	turn := m.cmd("chat", "a long question")
	if err := turn.Start(); err != nil {
		t.Fatal(err)
	}
	r := m.api.WaitRequests(asked+2, patience)[asked]
	if !r.Has("the plants") || !r.Has("No reminders.") {
		t.Errorf("the session lost a turn in which something was done: %+v", r.Messages)
	}
	speaksAlone(t, r, "[20")
	m.ok("fire", "look")
	fork := lastRequest(t, m.api)
	if !strings.Contains(m.ok("run", "show", "look"), `"busy": true`) {
		t.Error("the fork's record does not say that the owner was busy")
	}
	close(hold)
	if err := turn.Wait(); err != nil {
		t.Error(err)
	}
	if fork.Has("a long question") || !fork.Has("Momo") || fork.Has("session was lost") {
		t.Errorf("the fork reads %s", fork.Raw)
	}
	speaksAlone(t, fork, "[routine-bg:look]")
}

// orphaned: a sealed engine ends with kill -9 of ollim. The next turn says what was not answered, and an update that stood in that prompt,
// once.
func (m mainStory) orphaned(t *testing.T) {
	m.ok("updates", "add", "oil broke 77")
	hold, asked := make(chan struct{}), len(m.api.Requests())
	m.api.Reply(anthropicapi.Reply{Text: "TOO LATE", Hold: hold})
	cmd := m.cmd("chat", "SLOW one")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.api.WaitRequests(asked+1, patience)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	close(hold)
	m.nextTurn(t)
	r := lastRequest(t, m.api)
	if n := strings.Count(string(r.Raw), "oil broke 77"); n != 1 || !r.Has("SLOW one") || !r.Has("A turn was cut off") || r.Has("TOO LATE") {
		t.Errorf("the update stands %d times in %s", n, r.Raw)
	}
	if !r.Has("a long answer") || !r.Has("Momo") || r.Has("Look around.") {
		t.Error("main lost a turn, or holds a fork's")
	}
}

// nextTurn takes a turn as soon as the engine that was left behind has ended.
func (c *command) nextTurn(t *testing.T) {
	t.Helper()
	eventually(t, "the next turn", func() bool { return status(c.cmd("chat", "NEXT").Run()) == 0 })
}

// sameBeginnings: tools, system prompt and first message are those of the first request, byte for byte.
func sameBeginnings(t *testing.T, requests []anthropicapi.Request) {
	t.Helper()
	first := requests[0]
	for i, q := range requests {
		same(t, fmt.Sprintf("what request %d begins with", i), prefix(t, q), prefix(t, first))
		if got := offered(q); got != shared {
			t.Errorf("%d: shown:\n%s\nwant:\n%s", i, got, shared)
		}
		same(t, fmt.Sprintf("the first message of request %d", i), said(q)[0], said(first)[0])
	}
	wanted := []string{"You are Rex.", "[routine-bg:ID]"}
	if slices.ContainsFunc(wanted, func(text string) bool { return !strings.Contains(first.System, text) }) || strings.Contains(first.System, "file-based memory") {
		t.Errorf("the system prompt of main: %s", first.System)
	}
}
