package main

import (
	"strings"
	"testing"
)

// TestApproveDistilled: before the owner approves a job, the terminal shows the gate that ollim distil wrote, and the verdict about it, or
// that the verdict cannot be read.
func TestApproveDistilled(t *testing.T) {
	t.Parallel()
	c := withRecords(t, func() chan struct{} { return nil })
	c.ok("distil", "disk", "--yes")
	id := strings.Fields(c.ok("distil", "list"))[0]
	ask := func(answer string, want ...string) {
		t.Helper()
		s := c.onScreen(160, "approve", "disk")
		s.WaitFor(`approve disk \(routine\)\?`)
		shown := strings.Join(s.Scrolled(), "\n") + s.Text()
		for _, text := range append(want, "gates/disk: | in1=$(cat -- 'data/disk.txt' 2>&1) || exit 0") {
			if !strings.Contains(strings.Join(strings.Fields(shown), " "), text) {
				t.Errorf("%q is not on the screen:\n%s", text, shown)
			}
		}
		s.Type(answer + "\r")
		s.Leave()
	}
	verdict := c.read("state/distils/" + id + "/verdict.json")
	c.write("state/distils/"+id+"/verdict.json", "{")
	ask("n", "gate: the verdict about this gate cannot be read: ")
	c.write("state/distils/"+id+"/verdict.json", verdict)
	c.write("gates/disk", c.read("gates/disk")+"# mine\n")
	ask("n", "gate: this gate is not as distil "+id+" judged it")
	c.write("gates/disk", c.read("state/distils/"+id+"/gate"))
	ask("y", "gate: judged by distil "+id+" on runs that the model had not seen: 4 of 4 quiet runs skipped, 0 of 2 pings lost")
	c.write("data/disk.txt", "disk 10 %\n")
	c.ok("fire", "disk")
	if got := c.latest("disk").Outcome; got != "gated" {
		t.Errorf("the outcome is %s", got)
	}
}
