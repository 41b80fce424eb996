package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// kernelFault makes a system call fail, or succeed without effect.
type kernelFault struct {
	call  uint32
	errno syscall.Errno
	why   string // what ollim says is missing; "" if the kernel only claims that it seals
}

// TestSealOnKernelsWithoutIt: where the kernel lacks Landlock or user notification, auto runs a job and says that nothing is sealed, on
// refuses to; where it only claims to seal, both refuse. It is run as a user, because a fault here would kill all processes.
func TestSealOnKernelsWithoutIt(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "kernels that lack a part of the seal, by injected errors")
	if !testkit.Unprivileged(t, "OLLIM_TEST_PROGRAM="+program) {
		return
	}
	for name, fault := range map[string]kernelFault{
		"no Landlock":          {unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS, "ABI 6 (Linux 6.12) is needed"},
		"Landlock is off":      {unix.SYS_LANDLOCK_CREATE_RULESET, unix.EOPNOTSUPP, "ABI 6 (Linux 6.12) is needed"},
		"an old Landlock":      {unix.SYS_LANDLOCK_CREATE_RULESET, 0, "ABI 6 (Linux 6.12) is needed"},
		"no user notification": {unix.SYS_SECCOMP, unix.EINVAL, "Linux 5.19 is needed"},
		"a claim of Landlock":  {unix.SYS_LANDLOCK_RESTRICT_SELF, 0, ""},
		"Landlock fails":       {unix.SYS_LANDLOCK_RESTRICT_SELF, unix.E2BIG, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testKernelFault(t, fault)
		})
	}
}

func testKernelFault(t *testing.T, fault kernelFault) {
	c, api := withNative(t)
	c.t = t
	c.write("probe.sh", "#!/bin/sh\ncat state/diary >got\n")
	c.write("state/diary", "sesame\n")
	if err := os.Chmod(filepath.Join(c.data, "probe.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "auto", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(./probe.sh)", "Work.")
	c.ok("routine", "add", "on", "--seal", "on", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(./probe.sh)", "Work.")
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if len(q.ToolResults()) == 0 {
			return anthropicapi.Use("Bash", map[string]string{"command": "./probe.sh"})
		}
		return anthropicapi.Reply{Text: "done"}
	})
	run := func(args ...string) (out string, code int) {
		t.Helper()
		var both bytes.Buffer
		cmd := c.cmd(args...)
		cmd.Stdout, cmd.Stderr = &both, &both
		testkit.StartRefusing(t, cmd, fault.errno, fault.call)
		code = status(cmd.Wait())
		return both.String(), code
	}
	want := func(wantCode int, words string, args ...string) {
		t.Helper()
		if out, code := run(args...); code != wantCode || !strings.Contains(out, words) || strings.Contains(out, "are sealed") {
			t.Errorf("%q: exit %d: %s; want %d, %q", args, code, out, wantCode, words)
		}
	}
	if fault.why == "" {
		want(77, "the seal does not hold", "fire", "auto")
		want(77, "the seal does not hold", "fire", "on")
	} else {
		want(78, fault.why, "fire", "on")
		if len(api.Requests()) > 0 {
			t.Error("a job that must be sealed has asked the model")
		}
		want(0, "", "fire", "auto")
		want(0, fault.why, "run", "show", "auto")
		want(65, fault.why, "check") // for the job that must be sealed
		want(1, fault.why, "doctor")
		c.ok("config", "set", "seal", "on")
		want(78, fault.why, "fire", "auto")
	}
	if _, err := os.Stat(filepath.Join(c.data, "got")); (err == nil) != (fault.why != "") {
		t.Errorf("what the program wrote: %v", err)
	}
	if shown := c.ok("run", "show", "auto"); fault.why != "" && strings.Contains(shown, `"abi"`) {
		t.Errorf("the record claims a seal: %s", shown)
	}
}
