package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/testkit"
)

// TestParallelRoutines: many routines are due in one minute. No more than limits.parallel run at once, and each slot has one run.
func TestParallelRoutines(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	const most = 8
	c.env = []string{"OLLIM_LIMITS_PARALLEL=" + strconv.Itoa(most), "OLLIM_SPEND_RUNS_PER_DAY=none"}
	if limit := os.Getenv("OLLIM_TEST_PARALLEL"); limit != "" { // to measure another one
		c.env[0] = "OLLIM_LIMITS_PARALLEL=" + limit
	}
	n := testkit.Full(500, 40)
	c.write("play.yaml", "turns:\n  - - delay: 100ms\n    - text: well\n")
	due := time.Now().UTC().Truncate(time.Minute)
	var noted []slot.Schedule // before the slot: a minute may end before the tick notes them
	for i := range n {
		id, cron := fmt.Sprintf("r%03d", i), fmt.Sprintf("%d %d %d %d *", due.Minute(), due.Hour(), due.Day(), due.Month())
		c.write("routines/"+id+".md", "---\nid: "+id+"\ncron: \""+cron+"\"\ntimezone: UTC\nbackground: true\nisolated: true\nengine: script:play.yaml\n---\nGo.\n")
		noted = append(noted, slot.Schedule{At: due.Add(-time.Hour), Job: id, Name: id, Cron: cron, Zone: "UTC", Enabled: true})
	}
	c.noteSchedules(noted)
	done, peak := make(chan struct{}), atomic.Int64{}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				peak.Store(max(peak.Load(), memoryOf(c.data)))
			}
		}
	}()
	c.ok("tick", "--wait")
	close(done)
	<-watched
	type moment struct {
		at    string
		begin int
	}
	var moments []moment
	seen := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(c.ok("run", "list", "--json", "-n", "0")), "\n") {
		var r struct{ Job, Outcome, Started, Finished string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if seen[r.Job]++; r.Outcome != "ok" || seen[r.Job] > 1 {
			t.Errorf("%s: %s, run %d", r.Job, r.Outcome, seen[r.Job])
		}
		moments = append(moments, moment{r.Started, 1}, moment{r.Finished, -1})
	}
	if len(seen) != n {
		t.Errorf("%d of %d routines have run", len(seen), n)
	}
	slices.SortFunc(moments, func(a, b moment) int { return strings.Compare(a.at, b.at) })
	now, highest := 0, 0
	for _, m := range moments {
		now += m.begin
		highest = max(highest, now)
	}
	if os.Getenv("OLLIM_TEST_PARALLEL") == "" && (highest > most || highest < 2) {
		t.Errorf("up to %d runs at once, want at most %d, and more than one", highest, most)
	}
	t.Logf("%d routines: at most %d at once, peak memory %d MB", n, highest, peak.Load()>>10)
}

// memoryOf returns the memory of the processes that have a data directory in their command line or environment, in kB, each shared page
// counted once.
func memoryOf(data string) (sum int64) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !strings.Contains(string(environ), "OLLIM_DATA_DIR="+data) {
			continue
		}
		text, _ := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
		_, rest, _ := strings.Cut(string(text), "\nPss:")
		line, _, _ := strings.Cut(rest, "\n")
		if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(line), " kB"), 10, 64); err == nil {
			sum += kb
		}
	}
	return sum
}

// TestSecondSlotWaits: two slots of one routine wait. An audit knows that, and they run one after the other: none is skipped.
func TestSecondSlotWaits(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	c.write("play.yaml", "turns:\n  - - delay: 100ms\n    - text: well\n")
	second := time.Now().UTC().Add(-30 * time.Minute).Truncate(time.Minute) // no other slot is due during the test
	first := second.Add(-time.Hour)
	cron := fmt.Sprintf("%d * * * *", second.Minute())
	c.write("routines/each.md", "---\nid: each\ncron: \""+cron+"\"\ntimezone: UTC\nbackground: true\nisolated: true\nengine: script:play.yaml\n---\nGo.\n")
	c.noteSchedules([]slot.Schedule{{At: first.Add(-time.Minute), Job: "each", Name: "each", Cron: cron, Zone: "UTC", Enabled: true}})
	c.write("state/tick.json", fmt.Sprintf(`{"accounted": %q, "waiting": [{"job": "each", "slot": %q}, {"job": "each", "slot": %q}]}`,
		time.Now().UTC().Format(time.RFC3339), first.Format(time.RFC3339), second.Format(time.RFC3339)))
	if got := c.ok("schedule", "audit"); strings.Count(got, "\tqueued\t") != 2 {
		t.Errorf("an audit: %s", got)
	}
	c.ok("tick", "--wait")
	if got := c.ok("schedule", "audit"); strings.Count(got, "\tok\t") != 2 {
		t.Errorf("an audit after a tick: %s", got)
	}
}
