//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// distilFilter is the deciding part that the model writes in these tests.
const distilFilter = "```sh\nn=$(printf '%s\\n' \"$1\" | awk '/^disk / { print $2 }')\n[ -n \"$n\" ] && [ \"$n\" -le 90 ] && exit 1\nexit 0\n```"

// withRecords makes a data directory with the routine disk, which has run twelve times and pinged in four of them. hold is asked before the
// model answers a request for a gate.
func withRecords(t *testing.T, hold func() chan struct{}) *command {
	t.Helper()
	c, api := withNative(t)
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		results := q.ToolResults()
		switch {
		case strings.Contains(q.System, "deciding part of a gate"):
			return anthropicapi.Reply{Text: distilFilter, Hold: hold(), Usage: anthropicapi.Usage{In: 2000, Out: 100}}
		case len(results) == 0:
			return anthropicapi.Use("Read", map[string]string{"file_path": "data/disk.txt"})
		case len(results) == 1 && strings.Contains(results[0].ResultText, "95"):
			return anthropicapi.Use("ping_user", map[string]string{"message": "full"})
		}
		return anthropicapi.Reply{Text: "Done."}
	})
	c.ok("config", "set", "delivery.command", "true")
	c.ok("config", "set", "spend.per-day", "none")
	c.ok("routine", "add", "disk", "--id", "disk", "--cron", "@yearly", "--background", "--isolated", "--update-main-session", "freely", "--allowed-tools", "Read(./**)", "Look at data/disk.txt.")
	if err := os.Mkdir(filepath.Join(c.data, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		c.write("data/disk.txt", fmt.Sprintf("disk %d %%\n", []int{95, 50, 40}[i%3]))
		c.ok("fire", "disk")
	}
	return c
}

// TestDistilKilledInItsRequest: a distil that is killed while the model writes is booked as what was reserved for the request, and leaves
// nothing in place.
func TestDistilKilledInItsRequest(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	asked := make(chan struct{}, 8)
	c := withRecords(t, func() chan struct{} { asked <- struct{}{}; return hold })
	defer close(hold)
	cmd := c.cmd("distil", "disk", "--yes")
	temporary := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	c.env = append(c.env, "TMPDIR="+temporary)
	c.ok("tick", "--wait")
	var r struct {
		Kind, Outcome           string
		Cost, Assumed, Reserved float64
	}
	text := c.ok("run", "show", filepath.Base(c.last()))
	if err := json.Unmarshal([]byte(strings.Replace(text, "cost_assumed", "assumed", 1)), &r); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "ollim-2*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	if r.Kind != "distil" || r.Outcome != "interrupted" || r.Cost <= 0 || r.Cost != r.Assumed {
		t.Errorf("%+v: %s", r, text)
	}
	if c.has("gates/disk") || strings.Contains(c.read("routines/disk.md"), "gate") {
		t.Error("a gate is in place")
	}
	c.fails(65, "distil", "put", filepath.Base(c.last()))
}

// TestDistilKilled: killed at any moment, a distil and its gate are in place as a whole or not at all: the job has its old gate or the new
// one, complete, and the next distil works. OLLIM_TEST_ROUNDS raises the rounds.
func TestDistilKilled(t *testing.T) {
	t.Parallel()
	c := withRecords(t, func() chan struct{} { return nil })
	file := c.read("routines/disk.md")
	timed := func(args ...string) time.Duration { // how long it takes depends on the machine
		begun := time.Now()
		c.ok(args...)
		return time.Since(begun)
	}
	distil := timed("distil", "disk", "--yes")
	id := strings.Fields(c.ok("distil", "list"))[0]
	gate := c.read("state/distils/" + id + "/gate")
	put := timed("distil", "put", id)
	dice := rand.New(rand.NewSource(1))
	killed, placed := 0, 0
	n := rounds(t, 24)
	for round := 0; round < n || killed == 0 || placed == 0; round++ {
		if round == 20*n {
			t.Fatalf("%d processes were killed, %d times the gate was put in place: this test shows nothing", killed, placed)
		}
		args, whole := []string{"distil", "put", id}, &put
		if round%3 == 2 {
			args, whole = []string{"distil", "disk", "--yes"}, &distil
		}
		if round%4 != 3 {
			c.write("routines/disk.md", file)
			if err := os.RemoveAll(filepath.Join(c.data, "gates")); err != nil {
				t.Fatal(err)
			}
		}
		cmd := c.cmd(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		kill := time.AfterFunc(time.Duration(dice.Int63n(int64(2**whole))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
			*whole *= 2 // the machine may be slower by now
		} else {
			*whole = time.Since(begun)
		}
		kill.Stop()
		if c.wholeGate(len(gate)) {
			placed++
		}
	}
	c.ok("tick", "--wait")
	c.ok("distil", "put", id)
	for _, dir := range c.runs() {
		var r struct{ Kind, Outcome string }
		if err := json.Unmarshal([]byte(c.ok("run", "show", filepath.Base(dir))), &r); err != nil || r.Outcome == "" {
			t.Errorf("%s: %+v, %v", dir, r, err)
		}
	}
	t.Logf("%d processes were killed; %d times the gate was put in place", killed, placed)
}

// TestPutKilledAtEachStep: killed before any change of a file, ollim distil put leaves the job with its old gate or the new one.
func TestPutKilledAtEachStep(t *testing.T) {
	t.Parallel()
	c := withRecords(t, func() chan struct{} { return nil })
	c.env = append(c.env, "GOMAXPROCS=1") // so that nearly all calls are those of one thread, which strace counts
	file := c.read("routines/disk.md")
	c.ok("distil", "disk", "--yes")
	before, earlier := c.read("routines/disk.md"), c.read("gates/disk")
	c.ok("distil", "disk")
	id := strings.Fields(c.ok("distil", "list"))[0]
	gate := c.read("state/distils/" + id + "/gate")
	for _, again := range []bool{false, true} { // again: beside the gate of the earlier distil
		text := file
		if again {
			text = before
		}
		old, placed, step := 0, 0, 1
		for ; ; step++ {
			c.write("routines/disk.md", text)
			if err := os.RemoveAll(filepath.Join(c.data, "gates")); err != nil {
				t.Fatal(err)
			}
			if again {
				path := filepath.Join(c.data, "gates/disk")
				if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(earlier), 0o700)); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			if !c.killAt(step, "distil", "put", id) {
				break
			}
			if c.wholeGate(len(gate)) {
				placed++
			} else {
				old++
			}
		}
		if !again && old == 0 || again && placed == 0 {
			t.Errorf("again %v: %d steps left the old gate, %d the new one", again, old, placed)
		}
		if !c.wholeGate(len(gate)) || again && (c.has("gates/disk") || c.read("gates/disk-2") != gate) {
			t.Errorf("again %v: no gate is in place", again)
		}
		t.Logf("again %v: killed at %d steps, %d of them after the job had its gate", again, step-1, placed)
	}
}

// has reports whether there is a file in the data directory.
func (c *command) has(name string) bool {
	_, err := os.Lstat(filepath.Join(c.data, name))
	return err == nil
}

// wholeGate reports whether the job names a gate, which must be there in full and executable.
func (c *command) wholeGate(size int) bool {
	c.t.Helper()
	_, rest, has := strings.Cut(c.read("routines/disk.md"), "gate: ")
	if !has {
		return false
	}
	name, _, _ := strings.Cut(rest, "\n")
	info, err := os.Stat(filepath.Join(c.data, "gates", name))
	if err != nil || info.Mode()&0o100 == 0 || info.Size() != int64(size) {
		c.t.Errorf("the job names gates/%s: %v", name, err)
	}
	return true
}
