package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
)

const hookScript = `turns:
  - - tool: report_updates
      input: {message: "seen"}
    - delay: 3ms
    - text: done
`

// hooks makes so many webhooks whose runs report once and do nothing else, and returns their ids.
func (c *command) hooks(n int) (ids []string) {
	c.t.Helper()
	c.write("hook.yaml", hookScript)
	c.ok("config", "set", "engine", "script:hook.yaml")
	for i := range n {
		id := fmt.Sprintf("hook%d", i)
		ids = append(ids, id)
		c.write("webhooks/"+id+".md", "---\nid: "+id+"\nfields:\n  properties:\n    n: {type: integer}\nrate-limit: 10000/s\nisolated: true\n"+
			"allow-ping: false\nupdate-main-session: freely\n---\nLook at {n}.\n")
	}
	return ids
}

// inbox is the inbox of the data directory.
func (c *command) inbox() inbox.Book {
	disk := store.Disk{Now: time.Now, Warn: func(message string) { c.t.Error(message) }}
	return inbox.Book{
		Home: paths.Dir(c.data), Disk: disk, Zone: time.UTC, Limits: inbox.LimitsOf(1000, 1),
		NewRun: func() (string, error) { return runlog.NewID(time.Now(), rand.New(rand.NewSource(rand.Int63()))) },
		Runs:   runlog.Book{Home: paths.Dir(c.data), Disk: disk, Zone: time.UTC}.After,
	}
}

// accept puts so many events of two webhooks into the inbox, and returns their runs.
func (c *command) accept(events int) map[string][]string {
	c.t.Helper()
	receiver, err := c.inbox().Receive()
	if err != nil {
		c.t.Fatal(err)
	}
	defer receiver.Close()
	accepted := map[string][]string{}
	for _, hook := range c.hooks(2) {
		for n := range events / 2 {
			data := []payload.Datum{{Key: "n", Value: json.RawMessage(fmt.Sprint(n))}}
			run, _, err := receiver.Add(context.Background(), inbox.Entry{Hook: hook, Hash: fmt.Sprint(n), Data: data})
			if err != nil {
				c.t.Fatal(err)
			}
			accepted[hook] = append(accepted[hook], run)
		}
	}
	return accepted
}

// TestTickRunsEntries: a tick starts the first events, whose processes start the others; tick --wait returns when all have run.
func TestTickRunsEntries(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"tick"}, {"tick", "--wait"}} {
		c := newCommand(t)
		accepted := c.accept(6)
		c.ok(args...)
		if len(args) == 1 {
			eventually(t, "the inbox is empty", func() bool { return c.waiting() == 0 })
			eventually(t, "all processes have ended", func() bool { return len(process.Carrying("OLLIM_DATA_DIR="+c.data)) == 0 })
		}
		c.ranOnce(accepted, "ok")
	}
}

// waiting counts the entries of the inbox.
func (c *command) waiting() int {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.data, "state/inbox/*/[0-9]*.json"))
	if err != nil {
		c.t.Fatal(err)
	}
	return len(files)
}

// ranOnce checks that the events of each webhook, by the ids of their runs in the order of acceptance, were run once: each has one
// record, its prompt has its own value, which is its number in the order, and its agent reported at most once, in the order of
// acceptance. The outcome is one of these; where failed is one, the disk was full, and reports may be lost.
func (c *command) ranOnce(accepted map[string][]string, outcomes ...string) {
	c.t.Helper()
	records := map[string]string{}
	count := map[string]int{}
	for line := range strings.Lines(c.ok("run", "list", "-n", "0", "--json")) {
		var r struct{ ID, Kind, Outcome string }
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Kind != "webhook" {
			c.t.Fatal(line, err)
		}
		records[r.ID] = r.Outcome
		count[r.Outcome]++
	}
	c.t.Log(count)
	reports := c.reports()
	total := 0
	for hook, runs := range accepted {
		total += len(runs)
		last := 0
		for n, run := range runs {
			outcome := records[run]
			if !slices.Contains(outcomes, outcome) {
				c.t.Errorf("%s: run %s: outcome %q", hook, run, outcome)
			}
			prompt, err := os.ReadFile(paths.Dir(c.data).Run(run, "prompt.txt"))
			own := strings.HasPrefix(string(prompt), "[webhook:"+hook+"]") && strings.Contains(string(prompt), fmt.Sprintf("\n- n: %d\n", n))
			if !own && (outcome == "ok" || !errors.Is(err, fs.ErrNotExist)) {
				c.t.Errorf("%s: run %s of event %d: prompt %q, %v", hook, run, n, prompt, err)
			}
			at := reports[run]
			if len(at) > 1 || outcome == "ok" && len(at) != 1 && !slices.Contains(outcomes, "failed") || len(at) == 1 && at[0] < last {
				c.t.Errorf("%s: run %s of event %d: reported %v, the one before %d", hook, run, n, at, last)
			}
			if len(at) == 1 {
				last = at[0]
			}
		}
	}
	if len(records) != total {
		c.t.Errorf("%d runs of %d events", len(records), total)
	}
}

// reports returns where in the order of all reports those of each run are.
func (c *command) reports() map[string][]int {
	c.t.Helper()
	c.ok("updates", "pop") // then the list says whose they were
	at := map[string][]int{}
	i := 0
	for line := range strings.Lines(c.ok("updates", "list", "--all", "--json")) {
		var u struct{ By, Message string }
		if err := json.Unmarshal([]byte(line), &u); err != nil {
			c.t.Fatal(err)
		}
		if u.Message == "seen" {
			i++
			at[u.By] = append(at[u.By], i)
		}
	}
	return at
}

// tries is how often processes were started for the event that waits at the head of a webhook, the largest of all webhooks.
func (c *command) tries() (most int) {
	c.t.Helper()
	book := c.inbox()
	hooks, err := book.Hooks()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, hook := range hooks {
		s, err := book.Starts(hook)
		if err != nil {
			c.t.Fatal(err)
		}
		most = max(most, s.Tries)
	}
	return most
}

// TestKillEntries kills with -9, at random moments, the processes that run events of webhooks and those that start them. Each event
// is run once, in order; a run that was killed after it began is interrupted and is not started again. The wait before an event is
// started again doubles up to five minutes, and on a slow machine few processes outlive these moments: every fourth tick, and the
// processes of an event that was started six times, are not killed.
func TestKillEntries(t *testing.T) {
	t.Parallel()
	events := rounds(t, 10) * 2
	c := newCommand(t)
	accepted := c.accept(events)
	random := rand.New(rand.NewSource(1))
	killed, ticks := 0, 0
	eventually(t, "the inbox is empty", func() bool {
		if ticks++; ticks%4 == 0 {
			c.ok("tick")
		} else {
			killAfter(c.cmd("tick"), time.Duration(random.Intn(100_000))*time.Microsecond)
		}
		for range 20 {
			time.Sleep(time.Duration(random.Intn(40_000)) * time.Microsecond)
			own := process.Carrying("OLLIM_DATA_DIR=" + c.data)
			if len(own) > 0 && c.tries() < 6 && own[random.Intn(len(own))].Signal(syscall.SIGKILL) == nil {
				killed++
			}
		}
		c.stateParses()
		return c.waiting() == 0
	})
	eventually(t, "all processes have ended", func() bool { return len(process.Carrying("OLLIM_DATA_DIR="+c.data)) == 0 })
	c.ok("tick") // ends the records of the dead
	t.Logf("%d processes were killed", killed)
	c.ranOnce(accepted, "ok", "interrupted")
	c.stateParses()
}
