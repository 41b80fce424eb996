//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// spentOnce is what the accounts have for all runs.
func (c *command) spentOnce() (spent float64) {
	c.t.Helper()
	names, err := filepath.Glob(filepath.Join(c.data, "state/ledger/2*.jsonl"))
	if err != nil {
		c.t.Fatal(err)
	}
	costs := map[string]float64{} // by run
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var f struct {
				Fact, Run string
				Cost      float64
			}
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				c.t.Fatal(err)
			}
			if f.Fact == "money.settled" {
				costs[f.Run] = f.Cost
			}
		}
	}
	for _, cost := range costs {
		spent += cost
	}
	return spent
}

// killInARequest fires a job, whose model uses a tool, and kills ollim and its engine with -9 in the request after that.
func (c *command) killInARequest(t *testing.T, api *anthropicapi.Server, job, tool string) {
	t.Helper()
	hold := make(chan struct{})
	defer close(hold)
	use := anthropicapi.Use(tool, nil)
	use.Usage = anthropicapi.Usage{In: 10_000, Out: 1000}
	api.Reply(use, anthropicapi.Reply{Text: "late", Hold: hold})
	asked := len(api.Requests()) + 2
	cmd := c.cmd("fire", job)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n := len(api.WaitRequests(asked, patience)); n != asked {
		t.Fatalf("%d requests", n)
	}
	events := filepath.Join(c.last(), "events.jsonl")
	eventually(t, "the cost of the first answer is recorded", func() bool {
		text, err := os.ReadFile(events)
		return err == nil && (strings.Contains(string(text), `"type":"usage"`) || strings.Contains(string(text), `"reported":`))
	})
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	ofRun := "OLLIM_RUN=" + filepath.Base(c.last())
	for _, p := range process.Carrying(ofRun) {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	eventually(t, "the engine has ended", func() bool {
		return len(process.Carrying(ofRun)) == 0 && c.price("run", "show", job).Assumed > 0 // a dying process holds the lock for a moment
	})
}

// TestKilledInARequest: a run that was killed with its engine costs what its answers so far cost and what the open request may
// cost, every command and the limits say the same, and a later run adds its own cost.
func TestKilledInARequest(t *testing.T) {
	t.Parallel()
	for name, engine := range map[string]struct {
		with    func(testing.TB) (*command, *anthropicapi.Server)
		tool    string
		model   string     // whose price all tested versions of claude know
		known   [2]float64 // from, to
		assumed [2]float64
		after   float64 // of a run with 1000 tokens in
	}{
		// sonnet at 2, 2.50 and 10 USD: 16384 tokens of an answer, and what was said before
		"native": {with: withNative, model: "sonnet", tool: "list_reminders", known: [2]float64{0.03, 0.03}, assumed: [2]float64{0.16384, 0.25}, after: 0.002},
		// opus at 5, 6.25 and 25 USD; of the answer it does not tell more, before its end, than what was said
		"claude-code": {with: withClaude, model: "claude-opus-4-8", tool: "mcp__ollim__list_reminders", known: [2]float64{0.05, 0.075}, assumed: [2]float64{0.4096, 0.52}, after: 0.005},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "claude-code" {
				anthropicapi.InCI(t)
			}
			c, api := engine.with(t)
			c.write("routines/look.md", strings.Replace(lookFork, "---\n", "---\nmodel: "+engine.model+"\n", 1))
			within := func(what string, got float64, want [2]float64) {
				t.Helper()
				if got < want[0]-1e-6 || got > want[1]+1e-6 {
					t.Errorf("%s: %v, want %v", what, got, want)
				}
			}
			answer := anthropicapi.Reply{Text: "All is well.", Usage: anthropicapi.Usage{In: 1000}}
			api.Reply(answer)
			c.ok("fire", "look")
			if got, want := c.price("run", "show", "look"), (price{Cost: engine.after}); got != want {
				t.Errorf("a run that ended well: %+v, want %+v", got, want)
			}
			c.killInARequest(t, api, "look", engine.tool)
			shown, all := c.price("run", "show", "look"), c.price("cost", "--json").Cost
			within("known", shown.Cost-shown.Assumed, engine.known)
			within("assumed", shown.Assumed, engine.assumed)
			within("cost", all, [2]float64{shown.Cost + engine.after, shown.Cost + engine.after})
			if listed := c.price("run", "list", "-n", "1", "--json"); listed != shown {
				t.Errorf("run list: %+v, run show: %+v", listed, shown)
			}
			c.ok("config", "set", "spend.per-day", "0.10")
			if said, want := c.fails(77, "fire", "look"), fmt.Sprintf("limit per-day: %.2f spent of 0.10 USD", all); !strings.Contains(said, want) {
				t.Errorf("%s, want %s", said, want)
			}
			if closed := c.price("run", "show", "look~1"); math.Abs(closed.Cost-shown.Cost) > 1e-6 {
				t.Errorf("when closed: %+v, before: %+v", closed, shown)
			}
			if name == "claude-code" && testkit.Full(1, 0) == 0 {
				return // what follows is the same on every engine
			}
			c.ok("config", "set", "spend.per-day", "5.00")
			api.Reply(answer)
			c.ok("fire", "look")
			within("accounts", c.spentOnce(), [2]float64{all + engine.after, all + engine.after})
		})
	}
}
