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
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestUpdateOfAnOrphanedTurn: where the engine answers after kill -9 of ollim, an update that stood in the prompt counts as delivered:
// the next turn does not say it again. What was not answered is said again, also where the answer would have passed the gateway, which ends
// with ollim. TestMainConversationOnClaude shows a later turn.
func TestUpdateOfAnOrphanedTurn(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, tc := range map[string]struct {
		first    bool
		gateway  string
		late     anthropicapi.Reply
		answered bool
	}{
		"first turn":  {true, "off", anthropicapi.Reply{Text: "TOO LATE"}, true},
		"refused":     {false, "off", anthropicapi.Reply{Status: 400, Message: "no"}, false},
		"the gateway": {true, "on", anthropicapi.Reply{Text: "TOO LATE"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, api := withClaude(t)
			c.ok("config", "set", "seal", "off") // a sealed engine ends with its ollim
			c.ok("config", "set", "claude-code.gateway", tc.gateway)
			if !tc.first {
				c.ok("chat", "hello")
			}
			c.ok("update", "add", "oil broke 75")
			hold, asked := make(chan struct{}), len(api.Requests())
			tc.late.Hold = hold
			api.Reply(tc.late)
			cmd := c.cmd("chat", "SLOW one")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			api.WaitRequests(asked+1, patience)
			eventually(t, "the session is known", func() bool { return c.cmd("session", "id", "main").Run() == nil })
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			close(hold)
			c.nextTurn(t)
			r := lastRequest(t, api)
			if n := strings.Count(string(r.Raw), "oil broke 75"); n != 1 || !r.Has("SLOW one") || r.Has("TOO LATE") != tc.answered || !tc.answered && !r.Has("A turn was cut off") {
				t.Errorf("the update stands %d times in %s", n, r.Raw)
			}
		})
	}
}

// TestKillDuringClaude kills a fire with -9 at random moments: the session is never lost once it is known, and the next fire
// resumes it. OLLIM_TEST_ROUNDS raises the few rounds. TestPersistentRoutineOnClaude kills one fire, at a known moment.
func TestKillDuringClaude(t *testing.T) {
	t.Parallel()
	if os.Getenv("OLLIM_TEST_ROUNDS") == "" {
		anthropicapi.InCI(t)
	}
	rounds := rounds(t, 2)
	for lane := range testkit.Full(2, 1) { // one for each core: what a round costs is the start of claude
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			killDuringClaude(t, rounds, int64(lane))
		})
	}
}

func killDuringClaude(t *testing.T, rounds int, seed int64) {
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)
	c.ok("config", "set", "spend.runs-per-day", "none")
	c.ok("config", "set", "spend.per-day", "none")
	c.ok("config", "set", "spend.per-month", "none")
	api.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if len(r.ToolResults()) == 0 && r.Has("Check the market") && rand.Intn(2) == 0 {
			return anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "something"})
		}
		return anthropicapi.Reply{Text: "done"}
	})
	id := func() string {
		text, _ := os.ReadFile(filepath.Join(c.data, "state/routine_sessions/daily"))
		return strings.TrimSpace(string(text))
	}
	random := rand.New(rand.NewSource(seed))
	killed := 0
	for round := range rounds {
		before := id()
		if killAfter(c.cmd("fire", "daily"), time.Duration(random.Intn(1200))*time.Millisecond) == -1 {
			killed++
		}
		if after := id(); before != "" && after != before {
			t.Fatalf("round %d: session %q, was %q", round, after, before)
		}
		c.stateParses()
		eventually(t, fmt.Sprintf("round %d: the next fire", round), func() bool { return status(c.cmd("fire", "daily").Run()) == 0 })
		if after := id(); before != "" && after != before {
			t.Fatalf("round %d: the next fire began session %q instead of resuming %q", round, after, before)
		}
	}
	t.Logf("%d of %d fires were killed", killed, rounds)
	if killed < rounds/4 {
		t.Errorf("only %d of %d fires were killed in time", killed, rounds)
	}
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}
