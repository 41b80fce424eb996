package main

import (
	"math/rand"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit/agentapi"
)

// TestKillsDuringAgent stops fires of opencode, or kills them with -9, at random moments: no process and no lock is left, and the next fire
// works. With OLLIM_TEST_ROUNDS it does so with each agent.
func TestKillsDuringAgent(t *testing.T) {
	t.Parallel()
	agentapi.InCI(t)
	names := []string{"opencode", "codex", "gemini"}
	if os.Getenv("OLLIM_TEST_ROUNDS") == "" {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killsDuring(t, name)
		})
	}
}

func killsDuring(t *testing.T, name string) {
	t.Helper()
	g := withAgent(t, name)
	for _, limit := range []string{"runs-per-day", "per-day", "per-month"} {
		g.ok("config", "set", "spend."+limit, "none")
	}
	random := rand.New(rand.NewSource(35))
	g.plan(shell("sleep 0.1"))
	start := time.Now()
	g.fire(t, "story")
	whole := time.Since(start)
	cut := map[syscall.Signal]int{}
	all := rounds(t, 2)
	for round := range all {
		sig := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[round%2]
		g.plan(shell("sleep 0.5"), shell("sleep 300"))
		cmd := g.cmd("fire", "story")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int63n(int64(whole + time.Second))))
		_ = cmd.Process.Signal(sig)
		if code := status(cmd.Wait()); code == -1 || code == 128+int(sig) {
			cut[sig]++
		}
		eventually(t, "no process is left", func() bool { return len(process.Carrying(g.env[0])) == 0 && len(g.processes("")) == 0 })
		g.unlocked("story")
		g.stateParses()
	}
	g.plan(move{text: "Again."})
	g.fire(t, "story")
	t.Logf("%d of %d rounds were cut: %d stopped, %d killed; a whole fire took %s", cut[syscall.SIGTERM]+cut[syscall.SIGKILL], all, cut[syscall.SIGTERM], cut[syscall.SIGKILL], whole)
	if n := cut[syscall.SIGTERM] + cut[syscall.SIGKILL]; n < all*3/4 {
		t.Errorf("only %d of %d rounds were cut", n, all)
	}
}
