package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const daily = `---
id: daily
cron: "0 9 * * 1-5"
description: Daily market analysis
background: true
session: persistent
---
Check the market.
`

// persistentStory is one persistent routine on the real command, whose session goes on through what happens to its fires. A start of
// the command is dear: each serves several tests.
type persistentStory struct {
	*command
	api *anthropicapi.Server
}

// stored is the session of the routine, or "".
func (c *command) stored() string {
	text, _ := os.ReadFile(filepath.Join(c.data, "state/routine_sessions/daily"))
	return strings.TrimSpace(string(text))
}

// TestPersistentRoutineOnClaude: fires carry context across, after a signal, a compaction by the agent's own words and kill -9. A
// session whose transcript is lost begins anew, and one that cannot be compacted stays.
func TestPersistentRoutineOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	p := persistentStory{c, api}
	c.write("routines/daily-market.md", daily)
	claude := strings.TrimSpace(c.ok("config", "get", "claude-code.command"))
	c.wrap("exit 3") // dies before there is a session
	c.complains(1, "exit status 3", "fire", "daily")
	if id := c.stored(); id != "" {
		t.Fatalf("session %q of a process that never began one", id)
	}
	c.useClaude(claude)
	api.Reply(anthropicapi.Reply{Text: "Oil stands at 71."})
	c.ok("fire", "daily-market")
	if id := strings.TrimSpace(c.ok("session", "id", "routine:daily")); id == "" || id != c.stored() {
		t.Fatalf("session %q, stored %q", id, c.stored())
	}
	t.Run("signal", func(t *testing.T) { stopped(t, c, api, syscall.SIGTERM) })
	t.Run("compacted", p.compacted)
	t.Run("killed", p.killed)
	t.Run("lost", p.lost)
	t.Run("not compacted", p.notCompacted)
	c.write("state/routine_sessions/daily", "s-1234abcd")
	c.ok("fire", "daily") // carried over
	if now := c.stored(); engine.Holder(now) != engine.ClaudeCode {
		t.Errorf("session %q", now)
	}
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// stopped: a run that is stopped says so, leaves a session that goes on and no process.
func stopped(t *testing.T, c *command, api *anthropicapi.Server, sig syscall.Signal) {
	id, path, bin := c.stored(), c.variable("PATH"), t.TempDir()
	// a command of the agent's that does not end by itself
	if err := testkit.WriteFile(filepath.Join(bin, "ollim"), []byte("#!/bin/sh\nsleep 300 & sleep 300\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.environ(map[string]string{"PATH": bin + ":/usr/bin:/bin"})
	defer c.environ(map[string]string{"PATH": path})
	api.Reply(anthropicapi.Use("Bash", map[string]any{"command": "ollim help", "description": "help"}))
	var errOut bytes.Buffer
	cmd := c.cmd("fire", "daily")
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command of the agent runs", func() bool { return len(c.processes("sleep\x00")) > 0 })
	_ = cmd.Process.Signal(sig)
	if code := status(cmd.Wait()); code != 128+int(sig) {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
	c.wellSaid("interrupted: stopped by a signal", errOut.String())
	if got := c.outcome(); got != "interrupted" {
		t.Errorf("outcome %s", got)
	}
	c.nothingLeft()
	if now := c.stored(); now != id {
		t.Errorf("session %s, was %s", now, id)
	}
}

// processes are those of the newest run whose command line has this part.
func (c *command) processes(part string) (list []process.ID) {
	runs := c.runs()
	if len(runs) == 0 {
		return nil
	}
	for _, p := range process.Carrying("OLLIM_RUN=" + filepath.Base(runs[len(runs)-1])) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID)); bytes.Contains(line, []byte(part)) {
			list = append(list, p)
		}
	}
	return list
}

// compacted: the agent has its session compacted, after the tool server died under it.
func (p persistentStory) compacted(t *testing.T) {
	before, asked, hold := p.stored(), len(p.api.Requests()), make(chan struct{})
	first := anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "first"})
	first.Hold = hold
	p.api.Reply(
		first,
		anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "oil broke 75"}),
		anthropicapi.Use("mcp__ollim__compact_session", map[string]string{"instructions": "keep the price levels"}),
		anthropicapi.Reply{Text: "Reported."},
	)
	var errOut bytes.Buffer
	cmd := p.cmd("fire", "daily-market")
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	q := p.api.WaitRequests(asked+1, patience)[asked]
	if !q.Has("Oil stands at 71.") || q.Has("was compacted in your") {
		t.Error("the fire's context does not hold the answer before the interrupted one, or tells of a compaction")
	}
	servers := p.processes("mcp\x00serve")
	if len(servers) == 0 {
		t.Error("there is no tool server")
	}
	for _, server := range servers {
		_ = server.Signal(syscall.SIGKILL)
	}
	close(hold)
	if code := status(cmd.Wait()); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if now := p.stored(); now == before {
		t.Errorf("the session is %s still, after a compaction", now)
	}
	if got := p.ok("updates", "list"); !strings.Contains(got, "oil broke 75") {
		t.Errorf("updates: %q", got)
	}
}

// killed: a sealed engine ends with kill -9 of ollim, and the job's next fire goes on with the session.
func (p persistentStory) killed(t *testing.T) {
	id, asked, hold := p.stored(), len(p.api.Requests()), make(chan struct{})
	p.api.Reply(anthropicapi.Reply{Text: "TOO LATE", Hold: hold})
	cmd := p.cmd("fire", "daily")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	q := p.api.WaitRequests(asked+1, patience)[asked]
	if !q.Has("keep the price levels") {
		t.Error("the fire's context does not hold the summary by the agent's instructions")
	}
	if !q.Has("Your session was compacted in your previous fire") {
		t.Error("the prompt does not mention the compaction")
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the engine ends", func() bool { return len(p.processes("stream-json")) == 0 })
	close(hold)
	eventually(t, "the job can be fired again", func() bool { return status(p.cmd("fire", "daily").Run()) == 0 })
	p.stateParses()
	if now, r := p.stored(), lastRequest(t, p.api); now != id || r.Has("TOO LATE") || !r.Has("keep the price levels") {
		t.Errorf("session %s, was %s: %+v", now, id, r.Messages)
	}
}

// lost: a session whose transcript is gone begins anew, and the agent is told.
func (p persistentStory) lost(t *testing.T) {
	id := p.stored()
	transcripts := p.kept("projects/*/" + id + ".jsonl")
	if len(transcripts) != 1 {
		t.Fatalf("transcripts %v", transcripts)
	}
	if err := os.Remove(transcripts[0]); err != nil {
		t.Fatal(err)
	}
	p.ok("fire", "daily")
	now := p.stored()
	if last := lastRequest(t, p.api); now == id || !last.Has("Your earlier session is gone") {
		t.Errorf("session %s after %s was lost; the agent was told %q", now, id, last.LastUserText())
	}
	if got := p.ok("session", "history"); !strings.Contains(got, now+"\t"+id) {
		t.Errorf("the history does not show %s as the parent of %s:\n%s", id, now, got)
	}
}

// notCompacted: a compaction that fails leaves the session and no other.
func (p persistentStory) notCompacted(t *testing.T) {
	id, transcripts := p.stored(), "projects/*/*.jsonl"
	before := p.kept(transcripts)
	p.api.CompactReply(anthropicapi.Reply{Status: 400, Message: "no"})
	p.complains(1, "(?i)compact", "session", "compact", "routine:daily", "keep all")
	if now := p.stored(); now != id {
		t.Errorf("session %s, was %s before a compaction that failed", now, id)
	}
	if left := p.kept(transcripts); len(before) == 0 || len(left) != len(before) {
		t.Errorf("transcripts: %v, then %v", before, left)
	}
}
