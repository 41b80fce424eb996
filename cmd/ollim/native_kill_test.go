//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestKilledWithItsCommand: when ollim is killed with -9, a command of the native engine that is not sealed ends with it, and what
// that command has started in a session of its own ends at the next tick.
func TestKilledWithItsCommand(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.ok("config", "set", "seal", "off") // TestOrphanOfASealedCommand shows the other case
	c.write("hang.sh", "#!/bin/sh\nsetsid sleep 6002 &\necho >hanging\nexec sleep 6001\n")
	if err := os.Chmod(filepath.Join(c.data, "hang.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "daily", "--id", "daily", "--cron", "@yearly", "--background", "--allowed-tools", "Bash(./hang.sh)", "Check the market.")
	api.Reply(anthropicapi.Use("Bash", map[string]string{"command": "./hang.sh"}))
	cmd := c.cmd("fire", "daily")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	api.WaitRequests(1, patience)
	left := func() (list []string) {
		for _, p := range process.Carrying("OLLIM_RUN=" + filepath.Base(c.last())) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
			if words := strings.Split(string(line), "\x00"); words[0] == "sleep" {
				list = append(list, words[1])
			}
		}
		slices.Sort(list)
		return list
	}
	eventually(t, "both commands run", func() bool { return slices.Equal(left(), []string{"6001", "6002"}) })
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	eventually(t, "the engine's command has ended", func() bool { return slices.Equal(left(), []string{"6002"}) })
	c.ok("tick")
	eventually(t, "all that it started has ended", func() bool { return len(left()) == 0 })
	if got := c.outcome(); got != "interrupted" {
		t.Errorf("outcome %s", got)
	}
}

// TestUpdateOfAKilledTurnOnNative: an update counts as delivered where ollim was killed between keeping the answer and recording it,
// and stays pending where no answer was kept.
func TestUpdateOfAKilledTurnOnNative(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprintf("answered=%v", answered), func(t *testing.T) {
			t.Parallel()
			c, api := withNative(t)
			c.ok("update", "add", "oil broke 75")
			hold := make(chan struct{})
			api.Reply(anthropicapi.Reply{Text: "late", Hold: hold})
			cmd := c.cmd("chat", "SLOW one")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			api.WaitRequests(1, patience)
			held, err := new(lock.Table).Wait(t.Context(), filepath.Join(c.last(), "lock")) // no event can be recorded from now on
			if err != nil {
				t.Fatal(err)
			}
			if answered {
				close(hold)
				eventually(t, "the answer is kept", func() bool {
					files, _ := filepath.Glob(filepath.Join(c.data, "sessions", "*", "*.jsonl"))
					return slices.ContainsFunc(files, func(f string) bool {
						text, _ := os.ReadFile(f)
						return strings.Contains(string(text), `"late"`)
					})
				})
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if !answered {
				close(hold)
			}
			held.Release()
			c.ok("chat", "NEXT")
			r := lastRequest(t, api)
			if n := strings.Count(string(r.Raw), "oil broke 75"); n != 1 || r.Has("late") != answered {
				t.Errorf("the update stands %d times in %s", n, r.Raw)
			}
		})
	}
}

// TestOrphanOfASealedCommand: when ollim is killed with -9, everything that a sealed command has started ends at once, also what has cleared
// its environment. The next fire finds nothing of it.
func TestOrphanOfASealedCommand(t *testing.T) {
	t.Parallel()
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later", err)
	}
	c, api := withNative(t)
	c.write("slow", "#!/bin/sh\nmkfifo log/held\nsetsid env -i /bin/sh -c 'exec 3<>log/held; sleep 1000' &\necho begin >>log/slow\nexec sleep 1000\n")
	if err := os.Chmod(filepath.Join(c.data, "slow"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "work", "--id", "work", "--cron", "@yearly", "--background", "--isolated",
		"--allowed-tools", "Bash(./slow)", "--allowed-tools", "Write(./log/**)", "Work.")
	api.Reply(anthropicapi.Use("Bash", map[string]string{"command": "./slow"}), anthropicapi.Reply{Text: "done"})
	fire := c.cmd("fire", "work")
	if err := fire.Start(); err != nil {
		t.Fatal(err)
	}
	held := filepath.Join(c.data, "log/held")
	eventually(t, "the command", func() bool { return isRead(held) })
	_ = fire.Process.Kill()
	_ = fire.Wait()
	run := "OLLIM_RUN=" + filepath.Base(c.last())
	eventually(t, "the end of all that it started", func() bool { return !isRead(held) && len(process.Carrying(run)) == 0 })
	c.ok("fire", "work")
	if log := c.read("log/slow"); log != "begin\n" {
		t.Errorf("%q", log)
	}
}

// isRead reports whether a process has a named pipe open for reading.
func isRead(pipe string) bool {
	f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
