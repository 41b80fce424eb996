package native_test

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestLeftWithoutASeal: without a seal, the end of a turn that may use Bash kills what a gate or a skill of its run left, also if the turn
// started no program.
func TestLeftWithoutASeal(t *testing.T) {
	const run = "native-left-without-a-seal"
	left := exec.Command("sleep", "600")
	left.Env = append(left.Environ(), "OLLIM_RUN="+run)
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = left.Process.Kill() }()
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Text: "done"})
	s.says(engine.Request{Run: engine.Run{ID: run}, Input: engine.Input{Prompt: "look"}, Scope: engine.Scope{BuiltIns: []string{"Bash"}}}, "done")
	_ = left.Wait()
	if status, ok := left.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", left.ProcessState)
	}
}
