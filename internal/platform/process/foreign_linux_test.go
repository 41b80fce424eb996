package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// What another boot or another PID namespace calls by a number is no process here, even if one has that number and start.
func TestForeign(t *testing.T) {
	self := Self()
	if self.Boot == "" || self.Namespace == "" || self.Foreign() {
		t.Fatalf("this process is %+v", self)
	}
	boot, namespace, unknown := self, self, self
	boot.Boot, namespace.Namespace, unknown.Namespace = "another", "pid:[1]", ""
	for _, p := range []ID{boot, namespace, unknown} {
		if !p.Foreign() || p.Alive() || !errors.Is(p.Signal(syscall.SIGKILL), os.ErrProcessDone) {
			t.Errorf("%+v is taken for this process", p)
		}
	}
	if old := (ID{PID: self.PID, Start: self.Start}); old.Foreign() || !old.Alive() {
		t.Error("a record of before there were boot ids is foreign")
	}
}

// A zombie has ended.
func TestZombie(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	p := local(cmd.Process.Pid)
	for state := ""; state != "Z"; state = stat(p.PID).state {
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(p.PID, 0); err != nil {
		t.Fatalf("the zombie is gone: %v", err)
	}
	if p.Alive() || !errors.Is(p.Signal(syscall.SIGTERM), os.ErrProcessDone) {
		t.Error("a zombie is alive")
	}
}
