package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
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
