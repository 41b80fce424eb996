package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/testkit"
)

// TestWaitingKilled: the process that starts the slots that wait is killed at random moments. Each slot has one run, in the order of the
// slots, none is taken for missed, and the next tick goes on.
func TestWaitingKilled(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	const most = 3
	c.env = []string{fmt.Sprintf("OLLIM_LIMITS_PARALLEL=%d", most), "OLLIM_SPEND_RUNS_PER_DAY=none"}
	c.write("play.yaml", "turns:\n  - - delay: 50ms\n    - text: well\n")
	now := time.Now().UTC().Truncate(time.Minute)
	n := testkit.Full(90, 24)
	var lines []slot.Schedule
	for i := range n { // the first third was due a minute ago
		id, due := fmt.Sprintf("r%02d", i), now
		if i < n/3 {
			due = now.Add(-time.Minute)
		}
		cron := fmt.Sprintf("%d %d %d %d *", due.Minute(), due.Hour(), due.Day(), due.Month())
		c.write("routines/"+id+".md", "---\nid: "+id+"\ncron: \""+cron+"\"\ntimezone: UTC\nbackground: true\nisolated: true\nengine: script:play.yaml\n---\nGo.\n")
		lines = append(lines, slot.Schedule{At: now.Add(-time.Hour), Job: id, Name: id, Cron: cron, Zone: "UTC", Enabled: true})
	}
	c.noteSchedules(lines)
	kills := 0
	late := 300 * time.Millisecond
	for rounds, before := 0, n; rounds == 0 || before > 0; rounds++ {
		if rounds > 20*n {
			t.Fatalf("%d slots still wait after %d rounds", before, rounds)
		}
		kills += c.tickUnderFire(time.Duration(rand.Int64N(int64(late))))
		now := c.waitingSlots()
		if rounds > 0 && now == before { // the machine is so slow that the process is killed before it has started one
			late = late * 3 / 2
		}
		before = now
	}
	c.runsEnd(n)
	c.slotsMatch()
	c.ranOnceInOrder(n, most)
	if kills == 0 {
		t.Error("nothing was killed: this test shows nothing")
	}
	t.Logf("%d slots, %d kills", n, kills)
}

// tickUnderFire ticks, kills the process that starts the slots that wait some time after it began, and returns how many it killed.
func (c *command) tickUnderFire(after time.Duration) (kills int) {
	c.t.Helper()
	tick := c.cmd("tick", "--wait")
	var said bytes.Buffer
	tick.Stderr = &said
	if err := tick.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tick.Wait() }()
	var starter *process.ID
	look := time.After(0)
	for {
		select {
		case err := <-ended:
			if err != nil {
				c.t.Fatalf("tick: %v: %s", err, said.String())
			}
			return kills
		case <-look:
			switch {
			case starter == nil:
				look = time.After(5 * time.Millisecond)
				if starter = c.waitingStarter(tick.Process.Pid); starter != nil {
					look = time.After(after)
				}
			case starter.Alive() && syscall.Kill(starter.PID, syscall.SIGKILL) == nil:
				kills++
			}
		}
	}
}

// noteSchedules makes schedules in force as if ticks had seen them.
func (c *command) noteSchedules(list []slot.Schedule) {
	c.t.Helper()
	var text strings.Builder
	for _, s := range list {
		line, err := json.Marshal(s)
		if err != nil {
			c.t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	c.write("state/schedules.jsonl", text.String())
}

// waitingSlots is how many slots the page of ticks has that no run has claimed.
func (c *command) waitingSlots() (n int) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, "state/tick.json"))
	var page struct {
		Waiting []struct{ Job string }
	}
	if err == nil {
		err = json.Unmarshal(text, &page)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for _, w := range page.Waiting {
		if claims, _ := filepath.Glob(filepath.Join(c.data, "state/slots", w.Job, "*Z")); len(claims) == 0 {
			n++
		}
	}
	return n
}

// waitingStarter is the child of a tick that starts the slots that wait, nil if there is none. What it starts has its command line too, for
// a moment.
func (c *command) waitingStarter(tick int) *process.ID {
	for _, p := range process.Carrying("OLLIM_DATA_DIR=" + c.data) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		if bytes.Contains(line, []byte("\x00--waiting\x00")) && bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", tick)) {
			return &p
		}
	}
	return nil
}

// runsEnd waits until n runs have ended.
func (c *command) runsEnd(n int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%d runs have ended", n), func() bool {
		return strings.Count(c.ok("run", "list", "-n", "0", "--json"), `"finished":"`) >= n
	})
}

// ranOnceInOrder wants one run that went well for each of the routines r00 and so on, whose slots were claimed in this order, except that most
// runs at once may overtake each other.
func (c *command) ranOnceInOrder(n, most int) {
	c.t.Helper()
	claimed := map[string]time.Time{}
	claims, _ := filepath.Glob(filepath.Join(c.data, "state/slots/*/*Z"))
	for _, path := range claims {
		text, err := os.ReadFile(path)
		var claim slot.Claim
		if err = errors.Join(err, json.Unmarshal(text, &claim)); err != nil || claim.Outcome != "ok" {
			c.t.Errorf("%s: %s, %v", path, text, err)
		}
		claimed[filepath.Base(filepath.Dir(path))] = claim.Claimed
	}
	type ran struct{ Job, Outcome string }
	var all []ran
	for line := range strings.Lines(c.ok("run", "list", "-n", "0", "--json")) {
		var r ran
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatal(err)
		}
		if r.Outcome != "ok" {
			c.t.Errorf("%s: %s", r.Job, r.Outcome)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b ran) int { return claimed[a.Job].Compare(claimed[b.Job]) })
	seen := map[string]int{}
	for i, r := range all {
		seen[r.Job]++
		var place int
		if _, err := fmt.Sscanf(r.Job, "r%d", &place); err != nil || place > i+2*most || place < i-2*most {
			c.t.Errorf("%s was claimed as number %d", r.Job, i)
		}
	}
	for job, runs := range seen {
		if runs != 1 {
			c.t.Errorf("%s has %d runs", job, runs)
		}
	}
	if len(seen) != n {
		c.t.Errorf("%d of %d slots have a run", len(seen), n)
	}
	if len(claims) != n {
		c.t.Errorf("%d claims, want %d", len(claims), n)
	}
}
