package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

func sleeper(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestAlive(t *testing.T) {
	if !Self().Alive() {
		t.Error("this process is not alive")
	}
	cmd := sleeper(t)
	p := local(cmd.Process.Pid)
	if p.Start == 0 || !p.Alive() {
		t.Errorf("%+v is not alive", p)
	}
	if (ID{PID: p.PID, Start: p.Start + 1}).Alive() {
		t.Error("another process of the same id was taken for it")
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if p.Alive() || !errors.Is(p.Signal(syscall.SIGTERM), os.ErrProcessDone) {
		t.Error("alive after its end")
	}
}

func TestCarrying(t *testing.T) {
	const entry = "OLLIM_RUN=process-test"
	mine, other := sleeper(t, "A=1", entry), sleeper(t, entry+"-not")
	found := Carrying(entry)
	for len(found) == 0 || len(Carrying(entry+"-not")) == 0 { // the environment is that of the shell until exec
		found = Carrying(entry)
	}
	if len(found) != 1 || found[0].PID != mine.Process.Pid {
		t.Fatalf("found %+v, want %d", found, mine.Process.Pid)
	}
	KillAll(entry)
	if err := mine.Wait(); err == nil {
		t.Error("the process with the entry ended by itself")
	}
	if !(ID{PID: other.Process.Pid}).Alive() {
		t.Error("a process without the entry was killed")
	}
}

// TestCarryingDuringExec: a process that executes one program after another, and has no environment meanwhile, is found each time.
func TestCarryingDuringExec(t *testing.T) {
	const entry = "OLLIM_RUN=process-exec-test"
	self := filepath.Join(t.TempDir(), "again.sh")
	if err := os.WriteFile(self, []byte("exec sh \"$0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", self)
	cmd.Env = os.Environ()
	for i := range 100 { // a reading that ends early often ends behind an entry
		cmd.Env = append(cmd.Env, fmt.Sprintf("A%02d=", i))
	}
	cmd.Env = append(cmd.Env, entry)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for i := range testkit.Full(500, 75) {
		if found := Carrying(entry); len(found) != 1 {
			t.Fatalf("at look %d: %v", i, found)
		}
	}
}

// TestWithoutEnvironment: a process that began with an empty environment is not waited for.
func TestWithoutEnvironment(t *testing.T) {
	cmd := sleeper(t, "A=1")
	dir := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	if environ := environment(dir); string(environ) != "A=1\x00" || startedWithout(dir) {
		t.Errorf("%q, started without: %v", environ, startedWithout(dir))
	}
	cmd = exec.Command("env", "-i", "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	dir = fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	for deadline := time.Now().Add(patience); !startedWithout(dir); { // until env executes sleep
		if time.Now().After(deadline) {
			t.Fatalf("the process is taken for one that executes another program; environment %q", environment(dir))
		}
	}
}

// TestKillAllOfMany: processes that a process starts while the list of all is read are killed too.
func TestKillAllOfMany(t *testing.T) {
	for i := range 3 {
		entry := fmt.Sprintf("OLLIM_RUN=process-fork-test-%d", i)
		cmd := exec.Command("sh", "-c", "for n in $(seq 200); do sleep 300 & done; wait")
		cmd.Env = append(os.Environ(), entry)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for len(Carrying(entry)) < 10 {
		}
		KillAll(entry)
		_ = cmd.Wait()
		deadline := time.Now().Add(30 * time.Second) // one that was missed sleeps for longer
		left := Carrying(entry)
		for ; len(left) > 0 && time.Now().Before(deadline); left = Carrying(entry) {
		}
		if len(left) > 0 {
			KillAll(entry)
			t.Fatalf("round %d: %d processes are alive", i, len(left))
		}
	}
}
