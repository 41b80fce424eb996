package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// withClaude is ollim with the real claude command as its engine, over an API server of the test.
func withClaude(t testing.TB) (*command, *anthropicapi.Server) {
	t.Helper()
	claude := anthropicapi.Claude(t)
	api := anthropicapi.New(t)
	c := newCommand(t)
	c.ok(append([]string{"config", "set", "env"}, anthropicapi.ClaudeEnv(t, api)...)...)
	c.ok("config", "set", "claude-code.command", claude)
	c.ok("config", "set", "engine", "claude-code")
	return c, api
}

func (c *command) fails(want int, args ...string) string {
	c.t.Helper()
	var errOut bytes.Buffer
	cmd := c.cmd(args...)
	cmd.Stderr = &errOut
	if got := status(cmd.Run()); got != want {
		c.t.Errorf("ollim %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, errOut.String())
	}
	return errOut.String()
}

func (c *command) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

const daily = `---
id: daily
cron: "0 9 * * 1-5"
description: Daily market analysis
background: true
session: persistent
---
Check the market.
`

// TestPersistentRoutineOnClaude: three fires carry context across, the third after a compaction by the agent's own words.
func TestPersistentRoutineOnClaude(t *testing.T) {
	t.Parallel()
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)

	api.Reply(anthropicapi.Reply{Text: "Oil stands at 71."})
	c.ok("fire", "daily-market")
	first := strings.TrimSpace(c.ok("session", "id", "routine:daily"))

	api.Reply(
		anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "oil broke 75"}),
		anthropicapi.Use("mcp__ollim__compact_session", map[string]string{"instructions": "keep the price levels"}),
		anthropicapi.Reply{Text: "Reported."},
	)
	c.ok("fire", "daily-market")
	second := strings.TrimSpace(c.ok("session", "id", "routine:daily"))
	if second == first {
		t.Errorf("the session is %s still, after a compaction", first)
	}

	api.Reply(anthropicapi.Reply{Text: "Still 75."})
	c.ok("fire", "daily-market")
	if third := strings.TrimSpace(c.ok("session", "id", "routine:daily")); third != second {
		t.Errorf("session %s, want %s resumed", third, second)
	}
	requests := api.Requests()
	for _, r := range requests {
		t.Logf("%v %d messages, last: %.200q", r.IsCompaction(), len(r.Messages), r.LastUserText())
	}
	last := requests[len(requests)-1]
	if !last.Has("keep the price levels") {
		t.Error("the third fire's context does not hold the summary by the agent's instructions")
	}
	if !last.Has("Your session was compacted in your previous fire") || requests[1].Has("was compacted in your") {
		t.Error("the third fire, and only that, is to be told of the compaction")
	}
	if !requests[1].Has("Oil stands at 71.") {
		t.Error("the second fire's context does not hold the first's answer")
	}
	t.Log(c.ok("session", "history"))
	t.Log(c.ok("run", "log", "daily-market~1"))
	if got := c.ok("updates", "list"); !strings.Contains(got, "oil broke 75") {
		t.Errorf("updates: %q", got)
	}
}
