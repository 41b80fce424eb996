package cli

import (
	"strings"
	"testing"
	"time"
)

// reminder adds a reminder and lets its time come.
func (w *world) reminder(args ...string) (id string) {
	w.t.Helper()
	id, _, _ = strings.Cut(w.must(append(append([]string{"reminder", "add", "--in", "1m"}, args...), "Call mum.")...), "\t")
	w.pass(time.Minute)
	return id
}

const unavailable = "(agent unavailable) Call mum."

// A reminder whose run fails is tried once more, and its text reaches the owner without an agent after the second failure.
func TestReminderIsTriedTwice(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"the agent fails":            {"fire"},
		"the engine cannot be begun": {"fire", "--engine", "script:missing.yaml"},
	} {
		w := newWorld(t)
		w.script("turns:\n  - - error: the line went dead\n")
		id := w.reminder("--background", "--isolated")
		if r := w.run(append(args, id)...); r.status == 0 {
			t.Fatalf("%s: %+v", name, r)
		}
		w.pass(time.Second)
		if list := w.must("reminder", "list"); !strings.Contains(list, id) || strings.Contains(w.must("updates", "list"), "Call mum") {
			t.Errorf("%s: after the first failure: %q, updates %q", name, list, w.must("updates", "list"))
		}
		w.run(append(args, id)...)
		w.pass(time.Second)
		if list := w.must("reminder", "list"); list != "" || strings.Count(w.must("updates", "list"), unavailable) != 1 {
			t.Errorf("%s: after the second: %q, updates %q", name, list, w.must("updates", "list"))
		}
		if r := w.run(append(args, id)...); r.status != 66 {
			t.Errorf("%s: a third fire: %+v", name, r)
		}
	}
}

// The second attempt may go well: then nothing is said of the first, and the reminder is gone.
func TestSecondAttemptGoesWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - error: the line went dead\n")
	id := w.reminder("--background", "--isolated")
	w.run("fire", id)
	w.pass(time.Second)
	w.script("turns:\n  - - text: done\n")
	w.must("fire", id)
	if list, updates := w.must("reminder", "list"), w.must("updates", "list"); list+updates != "" {
		t.Errorf("reminders %q, updates %q", list, updates)
	}
}

// A plain reminder needs no engine: its text is delivered, or pending where nothing delivers or delivery refuses it.
func TestPlainReminderReachesTheOwner(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		program            string // that delivers; "" for none
		delivered, pending bool
	}{
		"no delivery": {"", false, true},
		"delivered":   {"cat >>received", true, false},
		"refused":     {"exit 77", false, true},
		"unreachable": {"exit 3", false, false}, // it waits in the outbox
	} {
		w := newWorld(t)
		set("engine", "script:missing.yaml")(w)
		if tc.program != "" {
			w.writeProgram("deliver.sh", "#!/bin/sh\n"+tc.program+"\n")
			w.must("config", "set", "delivery.command", "sh", "deliver.sh")
		}
		id := w.reminder("--plain")
		w.must("fire", id)
		if got := strings.Contains(w.read("received"), "Call mum."); got != tc.delivered {
			t.Errorf("%s: delivered: %v", name, got)
		}
		if updates := w.must("updates", "list"); strings.Contains(updates, "Call mum.") != tc.pending || strings.Contains(updates, "unavailable") {
			t.Errorf("%s: updates %q", name, updates)
		}
		if r := w.last(); r["outcome"] != "ok" || r["engine"] != nil || w.must("reminder", "list") != "" {
			t.Errorf("%s: %v, %v", name, r["outcome"], r["engine"])
		}
		if kept := w.run("fire", id); kept.status != 66 {
			t.Errorf("%s: it can be fired again: %+v", name, kept)
		}
	}
}

// A reminder that was not tried, because all is paused or it is not approved, is kept as it was.
func TestReminderThatWasNotTriedIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	id := w.reminder("--background", "--isolated")
	before := w.must("reminder", "list", "--json")
	w.must("pause", "2h")
	w.cron = true
	for range 3 {
		if r := w.run("fire", id); r.status != 75 || !strings.Contains(r.errOut, "everything is paused until 2026-03-02 12:0") {
			t.Errorf("%+v", r)
		}
		w.pass(time.Second)
		if now := w.must("reminder", "list", "--json"); now != before {
			t.Errorf("the reminder was\n%s\nand is\n%s", before, now)
		}
	}
	w.must("resume")
	if out := w.must("fire", "--print", id); out != "done\n" {
		t.Errorf("after the pause: %q", out)
	}
}

// A follow-up has every approval of the reminder before it, and waits for nobody.
func TestFollowUpNeedsNoApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - tool: follow_up_chain\n      input: {minutes_from_now: 5}\n    - text: later\n")
	w.must("fire", w.reminder("--background", "--isolated", "--max-chain", "2", "--allowed-tools", "WebFetch", "--description", "Mum"))
	if list := w.must("reminder", "list"); strings.Count(list, "\tset\tMum\n") != 1 || strings.Count(list, "\n") != 1 {
		t.Errorf("reminders:\n%s", list)
	}
	if waiting := w.must("approve"); waiting != "" {
		t.Errorf("waits for approval: %s", waiting)
	}
}
