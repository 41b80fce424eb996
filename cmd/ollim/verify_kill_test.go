package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/payload"
)

// Executables of verify that count their starts. In the first one a run can be killed; the other refuses it at once, and it can be
// killed in the retry, which waits for a reader of the pipe hold.
const (
	heldVerify    = "#!/bin/sh\necho x >>verified\n[ -p hold ] && { : >there; exec sleep 60; }\necho not yet\nexit 1\n"
	refusedVerify = "#!/bin/sh\necho x >>verified\necho not yet\nexit 1\n"
)

// verifiedJob makes a job with a retry, approved as it is, and returns the words that fire it.
func (c *command) verifiedJob(kind, program string) []string {
	c.t.Helper()
	gate := filepath.Join(c.data, "gates/check")
	c.write("gates/check", program)
	hold := filepath.Join(c.data, "hold")
	c.write("verify.yaml", "turns:\n  - - text: done\n  - - text: again\n    - touch: "+filepath.Join(c.data, "there")+"\n    - touch: "+hold+"\n")
	for _, err := range []error{os.Chmod(gate, 0o700), syscall.Mkfifo(hold, 0o600)} {
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.ok("config", "set", "engine", "script:verify.yaml")
	own := []string{"--id", "v1", "--isolated", "--verify", "check", "--unsealed", "verify", "--retry", "1", "Work."}
	switch kind {
	case "reminder":
		c.ok(append([]string{"reminder", "add", "--in", "1h"}, own...)...)
	case "webhook":
		c.ok(append([]string{"webhook", "add", "v1", "--field", "n=/n"}, own...)...)
		receiver, err := c.inbox().Receive()
		if err != nil {
			c.t.Fatal(err)
		}
		defer receiver.Close()
		run, _, err := receiver.Add(c.t.Context(), inbox.Entry{Hook: "v1", Hash: "a", Data: []payload.Datum{{Key: "n", Value: json.RawMessage("1")}}})
		if err != nil {
			c.t.Fatal(err)
		}
		return []string{"fire", "--inbox", run}
	default:
		c.ok(append([]string{"routine", "add", "v1", "--cron", "0 0 1 1 *", "--background"}, own...)...)
	}
	return []string{"fire", "v1"}
}

// TestKillVerify kills -9 a routine's, a reminder's and a webhook's run in verify, and in the retry after a refusal. The run is
// interrupted, does not go on, and is neither verified nor retried again. Only a reminder has its second attempt, with the retries
// that are left; then it is over, because the agent did its work.
func TestKillVerify(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"routine", "reminder", "webhook"} {
		for program, second := range map[string]int{heldVerify: 2, refusedVerify: 1} {
			c := newCommand(t)
			fire := c.verifiedJob(kind, program)
			cmd := c.cmd(fire...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "verify or the retry", func() bool { _, err := os.Stat(filepath.Join(c.data, "there")); return err == nil })
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if err := os.Remove(filepath.Join(c.data, "hold")); err != nil {
				t.Fatal(err)
			}
			c.ok("tick", "--wait")
			c.ok("tick", "--wait")
			c.verifiedOnly(kind, 1, 1, "interrupted")
			switch kind {
			case "webhook":
				c.fails(66, fire...)
			case "reminder":
				c.fails(1, fire...)
				c.verifiedOnly(kind, 1+second, 2, "failed")
				if c.there("v1") || !strings.Contains(c.ok("updates", "list"), "not yet") || strings.Contains(c.ok("updates", "list"), "unavailable") {
					t.Errorf("%s after the second attempt: %s", kind, c.ok("updates", "list"))
				}
			}
		}
	}
}

// verifiedOnly checks how often verify was started, in how many runs of an agent, and how the last one ended.
func (c *command) verifiedOnly(kind string, times, runs int, outcome string) {
	c.t.Helper()
	begun, _ := c.agentRuns("v1")
	n, last := strings.Count(c.read("verified"), "x"), c.latest("v1")
	if n != times || begun != runs || last.Outcome != outcome {
		c.t.Errorf("%s: verified %d times in %d runs, %s; want %d, %d, %s", kind, n, begun, last.Outcome, times, runs, outcome)
	}
}
