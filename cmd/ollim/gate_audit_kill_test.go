package main

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// TestAuditKilled: killed at any moment of a fire whose gate is audited, nothing that the run told is forgotten: as soon as it has pinged,
// the gate is off after the next fire at the latest, by one fact, and the owner gets one notice. Before that the audit is repeated.
// OLLIM_TEST_ROUNDS raises the rounds.
func TestAuditKilled(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "the audit after kills at random moments")
	c := newCommand(t)
	c.write("script.yaml", "turns:\n  - - delay: 5ms\n    - tool: ping_user\n      input: {message: PINGED}\n    - delay: 20ms\n    - text: done\n")
	c.ok("config", "set", "engine", "script:script.yaml")
	c.ok("config", "set", "quiet", "none")
	c.ok("config", "set", "delivery.command", "sh", "-c", "cat >received/$OLLIM_MESSAGE_ID")
	if err := os.Mkdir(filepath.Join(c.data, "received"), 0o700); err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewSource(1))
	killed, silent, all := 0, 0, 0
	for round := range rounds(t, 20) {
		name := fmt.Sprintf("job%d", round)
		c.write("gates/"+name, "#!/bin/sh\nexit 1\n")
		if err := os.Chmod(filepath.Join(c.data, "gates", name), 0o700); err != nil {
			t.Fatal(err)
		}
		c.ok("routine", "add", name, "--id", name, "--cron", "@yearly", "--background", "--isolated", "--update-main-session", "freely", "--gate", name, "--gate-audit", "1", "Work.")
		if err := os.RemoveAll(filepath.Join(c.data, "state/ping_budget.json")); err != nil { // it has five pings
			t.Fatal(err)
		}
		cmd := c.cmd("fire", name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(time.Duration(20_000+dice.Intn(90_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		kill.Stop()
		c.unlocked(name) // else the next fire is skipped
		pinged := c.hasPinged(name)
		_ = c.cmd("fire", name).Run()
		if !pinged { // the audit was repeated, and has pinged
			silent++
		} else if text := c.ok("run", "show", name); !strings.Contains(text, `"gate_off": true`) {
			t.Errorf("%s: its run has pinged, and the gate is on: %s", name, text)
		}
		c.ok("fire", name)
		facts := strings.Count(c.facts(), `"fact":"gate.off","job":"`+name+`"`)
		told := 0                                                            // an attempt that was killed is repeated with the same id
		received, _ := filepath.Glob(filepath.Join(c.data, "received", "*")) // the pattern is valid
		for _, path := range received {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "The gate of "+name+" is off: ") {
				told++
			}
		}
		notices := strings.Count(c.facts(), `"fact":"notice.cause","key":"gate `+name+`"`)
		if facts != 1 || notices != 1 || told > 1 { // the message of a killed process is sent a minute later
			t.Errorf("%s: %d facts, %d notices, told %d times", name, facts, notices, told)
		}
		all += told
	}
	if all == 0 {
		t.Error("the owner was told nothing, so this test shows nothing")
	}
	t.Logf("%d processes were killed; before the ping: %d", killed, silent)
}

// facts is the text of the ledger.
func (c *command) facts() (text string) {
	c.t.Helper()
	names, _ := filepath.Glob(filepath.Join(c.data, "state/ledger/2*.jsonl")) // the pattern is valid
	for _, name := range names {
		day, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		text += string(day)
	}
	return text
}

// hasPinged reports whether a run of a job has a ping in its events.
func (c *command) hasPinged(job string) bool {
	c.t.Helper()
	for _, dir := range c.runs() {
		record, _ := os.ReadFile(filepath.Join(dir, "run.json"))
		events, _ := os.ReadFile(filepath.Join(dir, "events.jsonl")) // a killed run may have neither
		if strings.Contains(string(record), `"`+job+`"`) && strings.Contains(string(events), `"type":"ping"`) {
			return true
		}
	}
	return false
}
