package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/testkit"
)

// stubEngine is a claude command that notes its begin in a file, waits until somebody writes to a pipe, and notes its end.
func (c *command) stubEngine() (log, pipe string) {
	c.t.Helper()
	dir := c.t.TempDir()
	log, pipe = filepath.Join(dir, "log"), filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		c.t.Fatal(err)
	}
	stub := filepath.Join(dir, "claude")
	text := fmt.Sprintf("#!/bin/sh\necho begin >>%[1]s\nread -r _ <%[2]s\necho end >>%[1]s\n", log, pipe)
	if err := testkit.WriteFile(stub, []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { // for engines that still wait
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
			_, _ = f.WriteString("\n\n")
			_ = f.Close()
		}
	})
	c.ok("config", "set", "env", "HOME="+dir, "PATH="+os.Getenv("PATH"))
	c.ok("config", "set", "claude-code.command", stub)
	c.knowClaude(stub, standIn())
	c.ok("config", "set", "engine", "claude-code")
	return log, pipe
}

// release lets the engine that waits at the pipe go on.
func release(t *testing.T, pipe string) {
	t.Helper()
	if err := os.WriteFile(pipe, []byte("\n"), 0o600); err != nil { // returns when an engine has opened it
		t.Error(err)
	}
}

// waitsForLock reports whether a thread of a process is in flock(2) for a file. /proc/locks does not show that in a PID namespace if the
// process that took the lock has ended.
func waitsForLock(t testing.TB, pid int, path string) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal("the process has ended", err)
	}
	for _, thread := range threads {
		var call, fd int
		text, _ := os.ReadFile(thread)
		if _, err := fmt.Sscanf(string(text), "%d %v", &call, &fd); err != nil || call != syscall.SYS_FLOCK {
			continue
		}
		if file, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd)); file == path {
			return true
		}
	}
	return false
}

// TestOrphanedEngineKeepsTheSession: an engine holds the lock of the session that it writes. After kill -9 of its ollim nobody
// else enters the session before the engine has ended.
func TestOrphanedEngineKeepsTheSession(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		session       string
		first, second []string
	}{
		"main":       {"", []string{"chat", "hello"}, []string{"chat", "a second writer"}},
		"foreground": {"", []string{"fire", "look"}, []string{"chat", "a second writer"}},
		"persistent": {"daily", []string{"fire", "daily"}, []string{"session", "compact", "routine:daily", "a second writer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t)
			c.write("routines/daily.md", daily)
			c.write("routines/look.md", look)
			c.write("state/routine_sessions/daily", "6ba7b810-9dad-11d1-80b4-00c04fd430c8")
			log, pipe := c.stubEngine()
			c.ok("config", "set", "seal", "off") // a sealed engine ends with its ollim
			begun := func(n int) func() bool {
				return func() bool {
					text, err := os.ReadFile(log)
					return err == nil && strings.Count(string(text), "begin") == n
				}
			}
			first := c.cmd(tc.first...)
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the engine begins", begun(1))
			if err := first.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = first.Wait()
			session := paths.Dir(c.data).SessionLock(tc.session)
			if guard, err := lock.TryGuard(session); !errors.Is(err, lock.ErrBusy) {
				guard.Release()
				t.Fatalf("the session is free while its engine works: %v", err)
			}
			second := c.cmd(tc.second...)
			if err := second.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the second writer waits for the session", func() bool { return waitsForLock(t, second.Process.Pid, session) })
			if !begun(1)() {
				t.Error("two engines write one session")
			}
			release(t, pipe)
			eventually(t, "the second writer's engine begins", begun(2))
			release(t, pipe)
			_ = second.Wait() // the stub answers nothing
			if text, err := os.ReadFile(log); err != nil || string(text) != "begin\nend\nbegin\nend\n" {
				t.Errorf("the engines ran as %q, %v", text, err)
			}
		})
	}
}
