package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// remindLater adds one and returns its id.
func (c *command) remindLater(args ...string) string {
	c.t.Helper()
	id, _, _ := strings.Cut(c.ok(append([]string{"reminder", "add", "--in", "45m"}, args...)...), "\t")
	return strings.TrimSpace(id)
}

// reminderFiles are the files of reminders that wait, and of those that run.
func (c *command) reminderFiles() (waiting, firing []string) {
	waiting, _ = filepath.Glob(filepath.Join(c.data, "reminders/*.md"))
	firing, _ = filepath.Glob(filepath.Join(c.data, "state/firing/*.md"))
	return waiting, firing
}

// TestChainOnClaude: a reminder follows itself up as often as it may, its file is out of the way while it runs, and at the
// end nothing is left of it.
func TestChainOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.ok("config", "set", "delivery.command", "sh", "-c", "cat >> received.txt")
	id := c.remindLater("--id", "ada", "--max-chain", "1", "--description", "Ada's answer", "Has Ada answered?")

	hold := make(chan struct{})
	first := anthropicapi.Use("mcp__ollim__follow_up_chain", map[string]any{"minutes_from_now": 90})
	first.Hold = hold
	api.Reply(first, anthropicapi.Reply{Text: "Later again."})
	cmd := c.cmd("fire", id)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	q := api.WaitRequests(1, patience)[0]
	if waiting, firing := c.reminderFiles(); len(waiting) != 0 || len(firing) != 1 || filepath.Base(firing[0]) != id+".md" {
		t.Errorf("while it runs: waiting %v, firing %v", waiting, firing)
	}
	close(hold)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !begins(q, "[reminder-bg:"+id+"]") || !strings.Contains(q.LastUserText(), "CHAIN: This is check 1 of 2.") {
		t.Errorf("told %q", q.LastUserText())
	}
	waiting, firing := c.reminderFiles()
	if len(waiting) != 1 || len(firing) != 0 {
		t.Fatalf("after the first check: waiting %v, firing %v", waiting, firing)
	}
	text := c.read("reminders/" + filepath.Base(waiting[0]))
	for _, line := range []string{"\nmax-chain: 1\n", "\nchain-depth: 1\n", "\nchain-parent: " + id + "\n", "\ndescription: Ada's answer\n", "\nHas Ada answered?\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("the follow-up lacks %q: %s", line, text)
		}
	}
	if at := field(t, text, "run-at"); at.Before(time.Now().Add(85*time.Minute)) || at.After(time.Now().Add(91*time.Minute)) {
		t.Errorf("it runs at %s", at)
	}

	if testkit.Full(1, 0) == 0 {
		return // the script chain shows the final check
	}
	before := len(api.Requests())
	api.Reply(
		anthropicapi.Use("mcp__ollim__follow_up_chain", map[string]any{"minutes_from_now": 90}),
		anthropicapi.Use("mcp__ollim__ping_user", map[string]string{"message": "checking in again: no answer"}),
		anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "Ada is silent"}),
	)
	c.ok("fire", strings.TrimSuffix(filepath.Base(waiting[0]), ".md"))
	requests := api.Requests()[before:]
	if got := requests[0].LastUserText(); !strings.Contains(got, "CHAIN: This is check 2 of 2, the final one") || strings.Contains(got, "follow_up_chain") {
		t.Errorf("told %q", got)
	}
	results := requests[1].ToolResults()
	if len(results) != 1 || !results[0].IsError || !strings.HasPrefix(results[0].ResultText, "This is the final check of the chain: no follow-up is possible. If it is still open, ping the owner now") {
		t.Errorf("a follow-up at the final check: %+v", results)
	}
	if waiting, firing := c.reminderFiles(); len(waiting) != 0 || len(firing) != 0 {
		t.Errorf("at the end: waiting %v, firing %v", waiting, firing)
	}
	if got := c.read("received.txt"); !strings.Contains(got, "checking in again") {
		t.Errorf("received %q", got)
	}
	if got := c.ok("updates", "list"); !strings.Contains(got, "\tAda is silent\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("pending updates: %q", got)
	}
}

func field(t *testing.T, text, key string) time.Time {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\n"+key+": ")
	value, _, _ := strings.Cut(rest, "\n")
	at, err := time.Parse(time.RFC3339, strings.Trim(value, `"'`))
	if err != nil {
		t.Error(err)
	}
	return at
}

// TestRemindersOnClaude: one that works alone, and one that is no more than its text; of neither a file is left.
func TestRemindersOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.ok("config", "set", "delivery.command", "sh", "-c", "cat >> received.txt")
	alone := c.remindLater("--isolated", "--update-main-session", "always", "Is the build green?")
	plain := c.remindLater("--plain", "take the pizza out")
	api.Reply(
		anthropicapi.Use("mcp__ollim__follow_up_chain", map[string]any{"minutes_from_now": 5}),
		anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "the build is green"}),
	)
	c.ok("fire", alone)
	requests := api.Requests()
	if want := (combination{"always", true, true}).tools(); offered(requests[0]) != want {
		t.Errorf("shown:\n%s\nwant:\n%s", offered(requests[0]), want)
	}
	if got := requests[0].LastUserText(); !begins(requests[0], "[reminder-bg:"+alone+"]") || strings.Contains(got, "CHAIN") {
		t.Errorf("told %q", got)
	}
	if got := c.ok("updates", "pop"); !strings.Contains(got, "\tthe build is green\n") {
		t.Errorf("pending updates: %q", got)
	}
	c.ok("fire", plain)
	if n := len(api.Requests()); n != len(requests) {
		t.Errorf("%d requests for a plain reminder", n-len(requests))
	}
	if got, err := os.ReadFile(filepath.Join(c.data, "received.txt")); err != nil || strings.TrimSpace(string(got)) != "take the pizza out" {
		t.Errorf("received %q %v", got, err)
	}
	if waiting, firing := c.reminderFiles(); len(waiting) != 0 || len(firing) != 0 {
		t.Errorf("at the end: waiting %v, firing %v", waiting, firing)
	}
	c.fails(66, "fire", alone)
}
