package main

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestWaitingTerminated: a tick that waits is asked to end, as when a cluster deletes its pod, while some slots run and others wait. It ends
// when everything that it has started has ended, those runs are recorded as interrupted, and the next tick runs the slots that still wait.
func TestWaitingTerminated(t *testing.T) {
	t.Parallel()
	c := newCommand(t)
	const most, n = 2, 5
	c.env = []string{fmt.Sprintf("OLLIM_LIMITS_PARALLEL=%d", most), "OLLIM_SPEND_RUNS_PER_DAY=none"}
	c.write("play.yaml", "turns:\n  - - delay: 1h\n    - text: well\n")
	due := time.Now().UTC().Truncate(time.Minute)
	var lines []slot.Schedule
	for i := range n {
		id, cron := fmt.Sprintf("r%02d", i), fmt.Sprintf("%d %d %d %d *", due.Minute(), due.Hour(), due.Day(), due.Month())
		c.write("routines/"+id+".md", "---\nid: "+id+"\ncron: \""+cron+"\"\ntimezone: UTC\nbackground: true\nisolated: true\nengine: script:play.yaml\n---\nGo.\n")
		lines = append(lines, slot.Schedule{At: due.Add(-time.Hour), Job: id, Name: id, Cron: cron, Zone: "UTC", Enabled: true})
	}
	c.noteSchedules(lines)
	tick := c.cmd("tick", "--wait")
	var said bytes.Buffer
	tick.Stderr = &said
	if err := tick.Start(); err != nil {
		t.Fatal(err)
	}
	inProgress := func() int {
		list := c.ok("run", "list", "-n", "0", "--json")
		return strings.Count(list, "\n") - strings.Count(list, `"finished":"`)
	}
	eventually(t, "as many runs as may be in progress", func() bool { return inProgress() == most })
	if err := tick.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = tick.Wait() // its status is looked at below
	if code := tick.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d: %s", code, said.String())
	}
	for _, p := range process.Carrying("OLLIM_DATA_DIR=" + c.data) {
		t.Errorf("process %d (%s) is left", p.PID, p.Name())
		_ = p.Signal(syscall.SIGKILL)
	}
	if list := c.ok("run", "list", "-n", "0", "--json"); strings.Count(list, `"outcome":"interrupted"`) != most || strings.Count(list, "\n") != most {
		t.Errorf("the runs are\n%s", list)
	}
	if got := c.waitingSlots(); got != n-most {
		t.Errorf("%d slots wait, want %d", got, n-most)
	}
	c.write("play.yaml", "turns:\n  - - text: well\n")
	c.ok("tick", "--wait")
	if list := c.ok("run", "list", "-n", "0", "--json"); strings.Count(list, `"outcome":"ok"`) != n-most || strings.Count(list, "\n") != n {
		t.Errorf("the runs are\n%s", list)
	}
}
