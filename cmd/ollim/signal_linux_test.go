package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
)

// TestSignalWhileWaiting: a command that a signal ends while it waits for a lock, or for crontab, says which, and has the status of
// the signal.
func TestSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	for i, tc := range []struct {
		lock string // "": the command waits for crontab
		args []string
		said string
	}{
		{"ledger", []string{"update", "add", "x"}, "ollim: update add: "},
		{"ledger", []string{"update", "pop"}, "ollim: update pop: "},
		{"tasks", []string{"task", "add", "x"}, "ollim: task add: "},
		{"config", []string{"config", "set", "timezone", "UTC"}, "ollim: config set: "},
		{"session-main", []string{"fire", "look"}, "ollim: fire: look: "},
		{"job-look", []string{"fire", "--wait", "1h", "look"}, "ollim: fire: look: "},
		{"session-main", []string{"session", "compact", "main", "x"}, "ollim: session compact: "},
		{"crontab", []string{"schedule", "remove", "crontab"}, "ollim: schedule remove: "},
		{"", []string{"schedule", "remove", "crontab"}, "ollim: schedule remove: the crontab may have been written: "},
	} {
		signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT}
		for n := range testkit.Full(len(signals), 1) {
			by := signals[(i+n)%len(signals)]
			t.Run(tc.lock+" "+strings.Join(tc.args, " ")+" "+by.String(), func(t *testing.T) {
				t.Parallel()
				c := newCommand(t)
				c.write("play.yaml", "turns: [[{text: hello}]]\n")
				c.ok("config", "set", "engine", "script:play.yaml")
				c.write("routines/look.md", look)
				c.ok("chat", "hello")
				cmd := c.cmd(tc.args...)
				waits := c.slowCrontab(cmd)
				if tc.lock != "" {
					path := filepath.Join(c.data, "state/locks", tc.lock+".lock")
					waits = func() bool { return waitsForLock(t, cmd.Process.Pid, path) }
					held, err := lock.Try(path)
					if err != nil {
						t.Fatal(err)
					}
					defer held.Release()
				}
				var errOut strings.Builder
				cmd.Stderr = &errOut
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the command waits", waits)
				if err := cmd.Process.Signal(by); err != nil {
					t.Fatal(err)
				}
				var ended *exec.ExitError
				if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != 128+int(by) {
					t.Errorf("%v, want exit status %d", err, 128+int(by))
				}
				line := errOut.String()
				why := strings.HasSuffix(line, ": "+by.String()+"\n") || strings.HasSuffix(line, ": stopped by a signal\n") ||
					by == syscall.SIGINT && strings.HasSuffix(line, ": stopped by you\n") // as a record has it
				if !strings.HasPrefix(line, tc.said) || !why || strings.Count(line, "\n") != 1 {
					t.Errorf("said %q, want one line %q with %s", line, tc.said, by)
				}
			})
		}
	}
}

// slowCrontab gives a command a crontab that does not end when it is to take a table. The function reports whether it has begun to.
func (c *command) slowCrontab(cmd *exec.Cmd) (begun func() bool) {
	c.t.Helper()
	dir := c.t.TempDir()
	begins := filepath.Join(dir, "begins")
	text := "#!/bin/sh\nif test \"$1\" = -l; then printf '# BEGIN ollim\\n# END ollim\\n'; exit; fi\n: >" + begins + "\nexec sleep 600\n"
	if err := testkit.WriteFile(filepath.Join(dir, "crontab"), []byte(text), 0o700); err != nil { //nolint:gosec // it is to be run
		c.t.Fatal(err)
	}
	cmd.Env = append(cmd.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	return func() bool {
		_, err := os.Stat(begins)
		return err == nil
	}
}
