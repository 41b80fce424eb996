package cli

import (
	"strings"
	"testing"
	"time"
)

// newAuditWorld makes a world with the routine disk, whose gate closes unless data/new exists. Each third fire that it closes is an audit.
func newAuditWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.script("turns:\n  - - text: quiet\n")
	w.must("config", "set", "quiet", "none")
	w.must("config", "set", "delivery.command", "(cat; echo) >>"+w.dir+"/sent")
	w.gated("disk", "test -e data/new", "--id", "disk", "--gate-audit", "3", "--description", "Disk")
	return w
}

// outcomes fires the routine disk n times, and returns how each run ended, with what its gate had to do with it.
func (w *world) outcomes(n int) (list []string) {
	w.t.Helper()
	for range n {
		w.run("fire", "disk")
		r := w.last()
		text := r["outcome"].(string)
		for _, key := range []string{"gate_audit", "gate_off"} {
			if r[key] == true {
				text += " " + key
			}
		}
		list = append(list, text)
		w.pass(time.Hour)
	}
	return list
}

// TestGateAudit: each third fire that the gate closes runs all the same. A run of these that pings turns the gate off, of which the owner
// hears once; a change of the gate turns it on.
func TestGateAudit(t *testing.T) {
	t.Parallel()
	w := newAuditWorld(t)
	const closed = "gated,gated,ok gate_audit"
	if got := strings.Join(w.outcomes(6), ","); got != closed+","+closed {
		t.Errorf("%s", got)
	}
	w.wants(w.must("check"), "routines/disk.md: gate-audit: note: the gate is on: it closed for 0 fires since the last audit, every 3rd such fire asks the model all the same, and 2 audits passed")
	w.write("data/new", "")
	if got := strings.Join(w.outcomes(3), ","); got != "ok,ok,ok" {
		t.Errorf("%s", got)
	}
	w.remove("data/new")
	w.script("turns:\n  - - tool: ping_user\n      input: {message: The disk is full.}\n    - tool: report_updates\n      input: {message: Full.}\n    - text: told\n")
	if got := strings.Join(w.outcomes(5), ","); got != closed+",ok gate_off,ok gate_off" {
		t.Errorf("%s", got)
	}
	const notice = "The gate of Disk is off: it would have skipped the run "
	if n := strings.Count(w.read("sent"), notice); n != 1 {
		t.Errorf("the owner was told %d times:\n%s", n, w.read("sent"))
	}
	w.wants(w.must("check"), "routines/disk.md: gate-audit: note: the gate has been off since ", ", which pinged you\n")
	w.wants(w.must("status"), "gate off\t", "\tdisk\tthe gate has been off since ")
	w.wants(w.must("status", "--json"), `"gates_off":[{"job":"disk","name":"disk","run":"2`)
	w.wants(w.must("why", "disk"), "its gate is off")
	w.pass(48 * time.Hour)
	if n := strings.Count(w.must("tick")+w.read("sent"), notice); n != 1 {
		t.Errorf("the owner was told %d times", n)
	}
	w.writeProgram("gates/disk", "#!/bin/sh\nexit 1\n")
	w.approveJob("disk")
	if got := strings.Join(w.outcomes(2), ","); got != "gated,gated" {
		t.Errorf("%s", got)
	}
	w.wants(w.must("why", "disk"), "its gate found nothing to do; the gate is on: it closed for 2 fires")
	if strings.Contains(w.must("status"), "gate off") {
		t.Error("the gate is off")
	}
}
