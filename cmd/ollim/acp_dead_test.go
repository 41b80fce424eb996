package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/agentapi"
)

// TestDeadService: a run whose model service is dead ends by itself with the reason, and is not ok: the service refuses connections, and with
// OLLIM_TEST_ROUNDS also one that answers each request with 500, which agents repeat for a minute or more.
func TestDeadService(t *testing.T) {
	t.Parallel()
	agentapi.InCI(t)
	for _, name := range []string{"opencode", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := withAgent(t, name)
			g.ok("routine", "edit", "story", "--timeout", "4m") // a quarter of it is how long an agent may be silent
			if os.Getenv("OLLIM_TEST_ROUNDS") != "" {
				g.down = 500
				g.dead(t, "500")
			}
			g.gone()
			g.dead(t, "refused")
			g.nothingLeft()
		})
	}
}

// dead fires a job over a dead service.
func (g *guest) dead(t *testing.T, how string) {
	t.Helper()
	var errOut bytes.Buffer
	cmd, start := g.cmd("fire", "story"), time.Now()
	cmd.Stderr = &errOut
	code := status(cmd.Run())
	line, _, _ := strings.Cut(errOut.String(), "\n")
	t.Logf("%s: exit %d after %s, %d requests: %s", how, code, time.Since(start).Round(time.Second), g.requests(), line)
	if code != 69 || !strings.Contains(line, "engine unavailable: ") || strings.ContainsAny(line, "{}") || g.outcome() != "failed" {
		t.Errorf("outcome %s:\n%s", g.outcome(), g.ok("run", "log", "last"))
	}
}
