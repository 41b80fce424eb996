package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPopIntoCommandOnce: a command that exits 0 has used the updates up, also if ollim is killed before it can know. The command kills
// it itself, with the work done or before it.
func TestPopIntoCommandOnce(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"after the work":  `cat >>taken; kill -9 $(cat pid)`,
		"before the work": `kill -9 $(cat pid); cat >>taken`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t)
			dir := t.TempDir()
			for i := range 3 {
				c.ok("update", "add", fmt.Sprint("news ", i))
			}
			want := c.ok("update", "list")
			cmd := c.popper(dir, script)
			if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it was not killed: %v", err)
			}
			eventually(t, "the updates are used up", func() bool { return strings.Count(c.ok("update", "list", "--all"), "\tpopped\t") == 3 })
			c.ok("update", "pop", "--", "sh", "-c", "cat >>"+dir+"/taken")
			if taken, err := os.ReadFile(filepath.Join(dir, "taken")); string(taken) != want || err != nil {
				t.Errorf("the commands were given\n%s%v, want\n%s", taken, err, want)
			}
		})
	}
}

// TestPopIntoFailingCommand: a command that fails after ollim was killed has not used them up.
func TestPopIntoFailingCommand(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	dir := t.TempDir()
	c.ok("update", "add", "news")
	want := c.ok("update", "list")
	_ = c.popper(dir, `kill -9 $(cat pid); exit 3`).Run()
	eventually(t, "the update is pending again", func() bool { return c.ok("update", "list") == want })
}

// TestPopIntoCommandKilled kills at random moments of as long as it takes here: each update reaches a command that succeeds once. Each fifth
// round is not killed, because more than ten pending updates would be dropped, and shows how long it takes now.
func TestPopIntoCommandKilled(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	dir := t.TempDir()
	n := rounds(t, 20)
	whole := time.Duration(0)
	for i := range n {
		c.ok("update", "add", fmt.Sprintf("news %03d", i))
		cmd := c.popper(dir, "cat >>taken")
		begun := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			whole = time.Since(begun)
			continue
		}
		time.Sleep(rand.N(whole))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	used := func() int { return strings.Count(c.ok("update", "list", "--all"), "\tpopped\t") }
	eventually(t, "all are used up", func() bool {
		c.ok("update", "pop", "--", "sh", "-c", "cat >>"+dir+"/taken")
		return used() == n
	})
	taken, err := os.ReadFile(filepath.Join(dir, "taken"))
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Sorted(strings.Lines(string(taken)))
	if len(lines) != n || len(slices.Compact(slices.Clone(lines))) != n {
		t.Errorf("%d updates were taken as %d lines:\n%s", n, len(lines), taken)
	}
}

// popper is update pop with a shell script, in dir, where the file pid has its process id.
func (c *command) popper(dir, script string) *exec.Cmd {
	cmd := c.cmd()
	cmd.Args = []string{"sh", "-c", `echo $$ >pid; exec "$@"`, "sh", cmd.Path, "update", "pop", "--", "sh", "-c", script}
	cmd.Path, cmd.Dir = "/bin/sh", dir
	return cmd
}
