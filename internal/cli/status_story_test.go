package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app/overview"
)

func TestStatusOfAWorkingInstallation(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("fire", "daily")
	want := []string{"tick\trunning\tMon 2026-03-02 10:00 UTC\n", "next\tTue 2026-03-03 09:00 UTC\tdaily\n", "pings\t5 of 5 left\n", "0 automatic runs today\n", "week\tdaily\t1 run\t1 ok\t$0.00\n"}
	out := w.must("status")
	w.wants(out, want...)
	if strings.Contains(out, "failed") || strings.Contains(out, "approve") {
		t.Errorf("nothing is wrong: %s", out)
	}
	if bare := w.must(); bare != out {
		t.Errorf("ollim without a command: %s\nwant: %s", bare, out)
	}
	if short := w.must("status", "--short"); short != "next Tue 09:00\n" {
		t.Errorf("short: %q", short)
	}
	w.pass(14 * time.Hour)
	w.must("tick")
	if short := w.must("status", "--short"); short != "next 09:00\n" {
		t.Errorf("short in the night: %q", short)
	}
}

// What failed since the owner looked is listed, also when it works again; a failure that stands is listed for a day.
func TestStatusSinceTheLastLook(t *testing.T) {
	t.Parallel()
	w := sound(t)
	failedRow := func() string {
		for line := range strings.Lines(w.must("status")) {
			if strings.HasPrefix(line, "failed\t") {
				fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				return strings.Join(append([]string{fields[2], fields[3]}, fields[5:]...), " ")
			}
		}
		return ""
	}
	if got := failedRow(); got != "" {
		t.Errorf("before: %q", got)
	}
	w.script("turns:\n  - - error: dead\n")
	w.run("fire", "daily")
	if r := w.run("status", "--short"); !strings.Contains(r.out, "1 failed") {
		t.Errorf("short: %q", r.out)
	}
	if s := w.status(); len(s.Failed) != 1 || !s.Failed[0].New {
		t.Errorf("json: %+v", s.Failed)
	}
	if got := failedRow(); got != "daily failed: dead new" {
		t.Errorf("at the first look: %q", got)
	}
	w.pass(time.Minute)
	if got := failedRow(); got != "daily failed: dead" {
		t.Errorf("at the second look: %q", got)
	}
	w.run("fire", "daily")
	w.pass(time.Minute)
	w.script("turns:\n  - - text: done\n")
	w.must("fire", "daily")
	if got := failedRow(); got != "daily failed: dead new, recovered" {
		t.Errorf("when it works again: %q", got)
	}
	if got := failedRow(); got != "" {
		t.Errorf("after that: %q", got)
	}
	w.script("turns:\n  - - error: dead\n")
	w.run("fire", "daily")
	w.pass(3 * 24 * time.Hour) // the owner was away
	if got := failedRow(); got != "daily failed: dead new" {
		t.Errorf("after three days: %q", got)
	}
	if s := w.status(); len(s.Failed) != 0 || s.Week[0].Failed != 3 || s.Week[0].Runs != 4 {
		t.Errorf("the week: %+v", s)
	}
	w.script("turns:\n  - - delay: 1m\n    - text: done\n")
	slow := w.start("fire", "daily")
	if s := w.status(); len(s.Running) != 1 || s.Week[0].Runs != 4 {
		t.Errorf("during a run: %+v", s)
	}
	slow.release()
	<-slow.ended
}

func (w *world) status() (s overview.Status) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must("status", "--json")), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestStatusSaysWhatWaits(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.write("routines/g.md", routineText("g", "0 9 * * *", "allowed-tools: [WebFetch]\n"))
	w.write("routines/bad.md", "---\ncron: \"61 * * * *\"\n---\nOne file with two faults.\n")
	w.must("update", "add", "one")
	w.must("config", "set", "delivery.command", "false")
	w.run("ping", "hello")
	w.must("pause", "2h")
	w.pass(20 * time.Minute)
	w.wants(w.must("status"),
		"tick\tnot running\tMon 2026-03-02 10:00 UTC\tsee: ollim doctor\n", "paused\tuntil Mon 2026-03-02 12:00 UTC\n",
		"approve\tg\tsee: ollim approve g\n", "updates\t1\n", "undelivered\t1\n", "invalid\t1 job files\tsee: ollim check\n")
	if short := w.must("status", "--short"); short != "no tick, paused, 1 to approve, 1 update, 1 undelivered, 1 invalid, next Tue 09:00\n" {
		t.Errorf("short: %q", short)
	}
	s := w.status()
	if s.Tick.Alive || s.Paused == nil || len(s.Approvals) != 1 || s.Updates != 1 || s.Undelivered != 1 || s.Invalid != 1 || *s.Spent.PerDay != 5 || s.Pings.Capacity != 5 {
		t.Errorf("%+v", s)
	}
	if r := w.run("status", "--short", "--json"); r.status != 64 {
		t.Errorf("both: %+v", r)
	}
}

// One part that cannot be read does not hide the rest.
func TestStatusOfABrokenInstallation(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.remove("state/questions")
	w.write("state/questions", "a file where the directory should be")
	w.write("config.yaml", "timezon: UTC\n")
	r := w.run("status")
	if r.status == 0 || !strings.Contains(r.out, "tick\trunning\t") || !strings.Contains(r.out, "spent\t") || !strings.Contains(r.errOut, "questions") || !strings.Contains(r.errOut, "timezon") {
		t.Errorf("%+v", r)
	}
}

// An agent's look is not the owner's.
func TestStatusInARun(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("fire", "daily")
	w.must("status")
	looked := w.read("state/status.json")
	w.pass(time.Hour)
	end := w.inRun()
	w.must("status")
	end()
	if got := w.read("state/status.json"); got != looked || looked == "" {
		t.Errorf("%q became %q", looked, got)
	}
}
