package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestClosedRunEnds closes the record of a run at random moments, as a machine does to which the lock of the run seems to be free: the run
// begins no further tool call, ends, and changes nothing of its record.
func TestClosedRunEnds(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.write("routines/long.md", "---\nid: long\ncron: \"0 9 * * *\"\nbackground: true\nupdate-main-session: freely\n---\nGo.\n")
	c.ok("config", "set", "spend.per-day", "none")
	random := rand.New(rand.NewSource(34))
	var asked atomic.Int64
	reached, goOn := make(chan struct{}, 1), make(chan struct{})
	var when atomic.Int64
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		n := asked.Add(1)
		use := anthropicapi.Use("report_updates", map[string]string{"message": fmt.Sprintf("report %d", n)})
		if n == when.Load() {
			reached <- struct{}{}
			use.Hold = goOn // one read from it lets the run go on
		}
		return use
	})
	for range rounds(t, 10) {
		asked.Store(0)
		when.Store(1 + random.Int63n(8))
		cmd := c.cmd("fire", "long")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-reached:
		case err := <-ended:
			t.Fatalf("it ended before: %v: %s", err, out.String())
		}
		dir := filepath.Join(c.data, paths.Dir("").Run(c.record("long").ID)) // before the run goes on, because that has a limit of answers
		goOn <- struct{}{}
		for range random.Intn(3_000) { // a moment of up to some milliseconds
			_ = os.Getpid()
		}
		closed := c.closeFromOutside(dir)
		err := <-ended
		if status(err) != 75 || !strings.Contains(out.String(), "another process closed the run") {
			t.Errorf("%v: %s", err, out.String())
		}
		if told := c.ok("updates", "list"); strings.Count(told, "report ") > strings.Count(closed, `"type":"tool_use"`) {
			t.Errorf("reported after the run was closed:\n%s\nits events were:\n%s", told, closed)
		}
		c.ok("updates", "pop")
		if now := c.contents(dir); now != closed {
			t.Errorf("the run wrote:\n%s\nit was:\n%s", now, closed)
		}
	}
}

// closeFromOutside closes the record of the run in progress that has a directory, as runlog.Book.Close does. It returns the contents of the
// directory.
func (c *command) closeFromOutside(dir string) (contents string) {
	c.t.Helper()
	guard, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = guard.Close() }()
	if err := syscall.Flock(int(guard.Fd()), syscall.LOCK_EX); err != nil {
		c.t.Fatal(err)
	}
	running := filepath.Join(dir, "running")
	text, err := os.ReadFile(running)
	var id string
	var generation int64
	if _, scanErr := fmt.Sscanf(string(text), "%s %013d\n", &id, &generation); err != nil || scanErr != nil {
		c.t.Fatalf("%q, %v, %v\n%s", text, err, scanErr, c.ok("run", "list"))
	}
	if err := os.WriteFile(running, fmt.Appendf(nil, "%s %013d\n", id, generation+1), 0o600); err != nil {
		c.t.Fatal(err)
	}
	var record map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	record["outcome"], record["finished"] = "interrupted", time.Now()
	if data, err = json.Marshal(record); err == nil {
		err = os.WriteFile(filepath.Join(dir, "run.json"), data, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return c.contents(dir)
}

// contents is what the directory of a run says of it.
func (c *command) contents(dir string) (text string) {
	c.t.Helper()
	for _, name := range []string{"run.json", "events.jsonl", "running"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			c.t.Fatal(err)
		}
		text += string(data)
	}
	return text
}
