//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// carrying is a conversation that is carried from the script engine to the native one.
type carrying struct {
	told   string   // what the script engine knows and the native one must hear once
	begin  []string // the command that carries it over
	owner  string   // in it; "" where the owner says nothing
	goOn   []string // the commands of the next turns
	record string   // the file that says that the carry was not answered
}

// TestCarryKilledAtEveryStep: killed with -9 before each change of a file while a conversation is carried over to another engine, the
// next turns know what was said before once, and no words of the owner are lost.
func TestCarryKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]carrying{
		"main":    {told: "My cat is Tom", begin: []string{"chat", "OWNER-SAYS"}, owner: "OWNER-SAYS", goOn: []string{"chat", "next"}, record: "main"},
		"routine": {told: "The level is 61", begin: []string{"fire", "watch"}, goOn: []string{"fire", "watch"}, record: "routine-watch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, api := withNative(t)
			echo(api)
			c.env = append(c.env, "GOMAXPROCS=1") // so that nearly all calls are those of one thread, which strace counts
			c.write("told.yaml", "turns:\n  - - text: The level is 61.\n  - - text: Well.\n")
			c.ok("routine", "add", "watch", "--id", "watch", "--cron", "@yearly", "--background", "--session", "persistent", "Watch.")
			c.ok("config", "set", "engine", "script:told.yaml")
			c.ok("chat", "My cat is Tom")
			c.ok("fire", "watch")
			c.ok("config", "set", "engine", "native")
			kept := filepath.Join(t.TempDir(), "kept")
			c.copyTree(c.data, kept)
			const walks = 10
			during, again := 0, 0
			// strace counts the calls of each thread, so a kill may come later in one walk than in another
			for step, stride := 1, testkit.Full(1, 2); ; step += stride {
				if err := os.RemoveAll(c.data); err != nil {
					t.Fatal(err)
				}
				c.copyTree(kept, c.data)
				if !c.killAt(step, of.begin...) {
					t.Logf("%d steps, and after %d of them the carry was not answered", step, during)
					if again++; during > 0 || again == walks {
						break
					}
					step = 1 - stride
					continue
				}
				if _, err := os.Stat(filepath.Join(c.data, "state/carried", of.record+".json")); err == nil {
					during++
				}
				c.checkCarry(api, step, of)
			}
			if during == 0 {
				t.Error("no kill came between the record of a carry and its answer, so this test shows nothing")
			}
		})
	}
}

// copyTree copies a directory with its modes.
func (c *command) copyTree(from, to string) {
	c.t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
}

// killAt runs a command line that is killed before a thread of it changes a file for the n-th time, and reports whether it was.
func (c *command) killAt(n int, args ...string) bool {
	c.t.Helper()
	const changes = "fsync,linkat,unlinkat,renameat,renameat2,ftruncate"
	_, _, trace := c.strace([]string{"-e", "trace=" + changes, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", changes, n)}, args...)
	return strings.Contains(trace, "killed by SIGKILL")
}

// checkCarry checks what the turns after a kill know.
func (c *command) checkCarry(api *anthropicapi.Server, step int, of carrying) {
	c.t.Helper()
	accepted := of.owner != "" && c.isWritten(of.owner)
	for turn := range 2 {
		c.ok(of.goOn...)
		requests := api.Requests()
		raw := string(requests[len(requests)-1].Raw)
		if n := strings.Count(raw, of.told); n != 1 {
			c.t.Errorf("step %d, turn %d: what was said before is there %d times: %s", step, turn, n, raw)
		}
		if accepted && !strings.Contains(raw, of.owner) {
			c.t.Errorf("step %d, turn %d: the owner's words are lost: %s", step, turn, raw)
		}
	}
	if left, err := filepath.Glob(filepath.Join(c.data, "state/carried/[^.]*")); err != nil || len(left) > 0 {
		c.t.Errorf("step %d: left behind: %q, %v", step, left, err)
	}
}

// isWritten reports whether words are in the queue of messages, or in the prompt of a run.
func (c *command) isWritten(words string) bool {
	for _, pattern := range []string{"state/queue/[^.]*", "state/runs/*/prompt.txt"} {
		files, _ := filepath.Glob(filepath.Join(c.data, pattern)) // the pattern is valid
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), words) {
				return true
			}
		}
	}
	return false
}
