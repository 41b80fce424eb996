package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

func TestStatusOfAWorkingInstallation(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("fire", "daily")
	want := []string{"tick\trunning\tMon 2026-03-02 10:00 UTC\n", "next\tTue 2026-03-03 09:00 UTC\tdaily\n", "pings\t5 of 5 left\n", "runs\t1 automatic today\t0 started by you\n", "week\tdaily\t1 of 1 ok\t$0.00\n"}
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

// A job that is bound to a machine is listed with it, by check as well.
func TestStatusOfABoundJob(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("routine", "add", "hourly", "--cron", "0 * * * *", "--background", "--host", "Server.lan", "Look around.")
	w.wants(w.must("status"), "next\tMon 2026-03-02 11:00 UTC\thourly\ton Server.lan\n")
	w.wants(w.must("check"), "routines/hourly.md: host: note: runs only on Server.lan, not on this machine, which is ")
	if r := w.run("fire", "hourly"); r.status != 77 || !strings.Contains(r.errOut, "host: Server.lan runs it, and this machine is ") {
		t.Errorf("by hand: %d %s", r.status, r.errOut)
	}
	if r := w.run("fire", "--scheduled", "hourly"); r.status != 0 || r.errOut != "" {
		t.Errorf("by a timer: %d %s", r.status, r.errOut)
	}
	if name, err := os.Hostname(); err != nil {
		t.Fatal(err)
	} else {
		w.must("routine", "edit", "hourly", "--host", name)
		w.wants(w.must("check"), "routines/hourly.md: host: note: runs only on "+name+", which is this machine\n")
	}
	w.must("fire", "--scheduled", "hourly")
	if r := w.run("routine", "edit", "hourly", "--host", "a b"); r.status == 0 || !strings.Contains(r.errOut, `"a b" is not the name of a machine`) {
		t.Errorf("a bad name: %d %s", r.status, r.errOut)
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
		"approve\tg\tsee: ollim approve g\n", "updates\t1\n", "undelivered\t1\n", "invalid\t1 job file\tsee: ollim check\n")
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

// During a pause the next fires are those after its end, and a pause without an end has none.
func TestStatusDuringAPause(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("routine", "add", "often", "--cron", "0 */6 * * *", "--background", "Look around.")
	w.must("reminder", "add", "--in", "1h", "Call.")
	w.must("remind", "2h", "Take the pizza out.")
	w.must("pause", "25h")
	w.wants(w.must("status"), "paused\tuntil Tue 2026-03-03 11:00 UTC\nseal\t", "next\tMon 2026-03-02 12:00 UTC\ttake-the-pizza-out\nnext\tTue 2026-03-03 11:00 UTC\tcall\nnext\tTue 2026-03-03 12:00 UTC\toften\n")
	if short := w.must("status", "--short"); !strings.HasSuffix(short, ", next 12:00\n") {
		t.Errorf("short: %q", short)
	}
	w.must("pause")
	if s := w.status(); len(s.Next) != 1 || s.Next[0].Label != "take-the-pizza-out" {
		t.Errorf("a plain reminder passes: %+v", s.Next)
	}
	w.must("pause", "--hold-reminders")
	w.wants(w.must("status"), "paused\tuntil: ollim resume\n", "next\tnothing\tsee: ollim resume\n")
	if s := w.status(); len(s.Next) != 0 {
		t.Errorf("%+v", s.Next)
	}
	if short := w.must("status", "--short"); strings.Contains(short, "next") {
		t.Errorf("short: %q", short)
	}
}

// A failure of yesterday has its date, although it is not a day old.
func TestStatusDatesWhatIsNotOfToday(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.script("turns:\n  - - error: dead\n")
	w.pass(13 * time.Hour)
	w.run("fire", "daily")
	w.wants(w.must("status"), "failed\t23:00:")
	w.pass(9 * time.Hour)
	w.wants(w.must("status"), "failed\tMon 2026-03-02 23:00 UTC\tdaily\t")
}

// Slots that were missed while the machine was off are listed for a day, and until the owner has looked.
func TestStatusSaysWhatWasMissed(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("routine", "add", "hourly", "--cron", "30 * * * *", "--background", "Look around.")
	w.must("tick")
	if out := w.must("status"); strings.Contains(out, "missed") {
		t.Errorf("nothing is: %s", out)
	}
	w.pass(5*time.Hour + 50*time.Minute)
	w.must("tick")
	w.wants(w.must("status"), "missed\t10:30:00\thourly\t6 slots\tthe last Mon 2026-03-02 15:30 UTC\n")
	if short := w.must("status", "--short"); !strings.Contains(short, "6 missed") {
		t.Errorf("short: %q", short)
	}
	w.pass(3 * 24 * time.Hour)
	w.must("tick")
	if s := w.status(); len(s.Missed) != 2 || s.Missed[0].Name != "hourly" || s.Missed[0].Count < 71 || s.Missed[1].Name != "daily" || s.Missed[1].Count != 3 {
		t.Errorf("since the last look: %+v", s.Missed)
	}
	w.must("status")
	w.pass(25 * time.Hour)
	w.must("resume")
	if s := w.status(); len(s.Missed) != 2 || s.Missed[0].Count > 25 {
		t.Errorf("after the look only those of the last day: %+v", s.Missed)
	}
}

// An audit of problems leaves out what went well, and a terminal gets a line that counts all slots.
func TestAuditOfProblems(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("routine", "add", "hourly", "--cron", "0 * * * *", "--background", "Look around.")
	w.must("tick")
	for i := range 4 {
		w.pass(w.clock().Truncate(time.Hour).Add(time.Hour + time.Second).Sub(w.clock()))
		switch i {
		case 1:
			w.script("turns:\n  - - error: dead\n")
		case 2:
			w.script("turns:\n  - - text: done\n")
			w.must("pause")
		case 3:
			continue // missed
		}
		w.run("fire", "--scheduled", "hourly")
		w.must("resume")
	}
	w.pass(30 * time.Minute)
	w.must("tick")
	all := w.must("schedule", "audit")
	if n := strings.Count(all, "\n"); n != 5 {
		t.Errorf("all: %s", all)
	}
	out := w.must("schedule", "audit", "--problems")
	if strings.Count(out, "\n") != 3 || !strings.Contains(out, "\tfailed\t") || strings.Count(out, "\tmissed\t") != 2 {
		t.Errorf("problems: %s", out)
	}
	if r := w.onTerminal("schedule", "audit", "--problems"); r.status != 0 || !strings.Contains(r.errOut, "5 slots: 2 missed, 1 failed, 1 ok, 1 paused; 3 problems\n") {
		t.Errorf("on a terminal: %+v", r)
	}
	if r := w.run("schedule", "audit"); r.errOut != "" {
		t.Errorf("cron would mail this: %q", r.errOut)
	}
	w.remove("state/slots")
	if r := w.run("schedule", "audit", "--problems"); r.status != 1 || strings.Count(r.out, "unaccounted") != 5 {
		t.Errorf("unaccounted: %+v", r)
	}
}

// TestTypedRunsAreNotAutomatic: status tells the runs that fired by themselves from those that somebody typed, also after the accounts
// were made again from the records.
func TestTypedRunsAreNotAutomatic(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Fine."} })
	w.must("routine", "add", "look", "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely", "Look.")
	w.must("ask", "Well?")
	w.must("chat", "Hello")
	w.must("fire", "look") // not at a terminal
	for _, step := range []string{"as counted", "made again"} {
		if out := w.must("status"); !strings.Contains(out, "\nruns\t1 automatic today\t2 started by you\n") {
			t.Errorf("%s:\n%s", step, out)
		}
		if out := w.must("status", "--json"); !strings.Contains(out, `"runs":{"automatic":1,"typed":2}`) {
			t.Errorf("%s:\n%s", step, out)
		}
		w.remove("state/ledger")
	}
	if page := w.must("report"); !strings.Contains(page, "3 runs of 500, 2 of them started by you") {
		t.Error("the report does not say who started the runs")
	}
}

// TestRunsAreCountedAlike: status and cost count every run that took place: also one that cost nothing, or failed before the engine began.
func TestRunsAreCountedAlike(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("chat", "Hello")
	w.must("fire", "daily") // not at a terminal
	w.wants(w.must("status"), "\nruns\t1 automatic today\t1 started by you\n", "week\tdaily\t1 of 1 ok\t")
	w.remove("script.yaml")
	if r := w.run("fire", "daily"); r.status == 0 {
		t.Fatalf("there is no such script: %+v", r)
	}
	w.wants(w.must("status"), "\nruns\t2 automatic today\t1 started by you\n", "week\tdaily\t1 of 2 ok\t")
	if cost := w.must("cost"); !strings.Contains(cost, "daily\t2\t$0.0000\t") {
		t.Errorf("cost: %q", cost)
	}
	w.pass(24 * time.Hour)
	w.wants(w.must("status"), "\nruns\t0 automatic today\t0 started by you\n", "week\tdaily\t1 of 2 ok\t")
}

// TestOverdueReminder: a reminder that no tick fires does not vanish when its time has passed. One that the next tick fires is next.
func TestOverdueReminder(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.must("reminder", "add", "--in", "2h", "--background", "Call mum.")
	w.must("remind", "1m", "tea")
	w.pass(time.Minute + 10*time.Second)
	w.wants(w.must("status"), "next\tMon 2026-03-02 10:01 UTC\ttea\nnext\tMon 2026-03-02 12:00 UTC\t")
	w.pass(time.Minute)
	w.wants(w.must("status"), "overdue\t10:01:", "\ttea\nnext\tMon 2026-03-02 12:00 UTC\t")
	if short := w.must("status", "--short"); short != "1 overdue, next 12:00\n" {
		t.Errorf("short: %q", short)
	}
	w.pass(3 * time.Hour)
	if s := w.status(); len(s.Overdue) != 2 || s.Overdue[0].Label != "tea" || s.Overdue[1].Label != "call-mum" || s.Tick.Alive {
		t.Errorf("%+v", s)
	}
	w.must("tick")
	if s := w.status(); len(s.Overdue) != 2 { // the world starts no process
		t.Errorf("%+v", s.Overdue)
	}
	for _, r := range w.status().Overdue {
		w.must("fire", r.Job)
	}
	if out := w.must("status"); strings.Contains(out, "overdue") {
		t.Errorf("they have run: %s", out)
	}
}

// TestHeldInQuietHours: status, report and doctor say until when a message is held.
func TestHeldInQuietHours(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.pass(13 * time.Hour) // 23:00
	w.script("turns:\n  - - error: the line went dead\n")
	if r := w.run("fire", "daily"); r.status == 0 {
		t.Fatalf("%+v", r)
	}
	w.must("tick")
	w.wants(w.must("status"), "\nmessages\t1 held until 07:00 (quiet)\n")
	w.wants(w.must("doctor"), "PASS\toutbox\t1 held until 07:00 (quiet)\t\n")
	w.wants(w.must("report"), "held until 07:00 (quiet)")
	if short := w.must("status", "--short"); strings.Contains(short, "undelivered") {
		t.Errorf("it is not undelivered: %s", short)
	}
	w.pass(8*time.Hour + time.Minute)
	w.must("tick")
	for _, command := range []string{"status", "doctor", "report"} {
		if out := w.run(command).out; strings.Contains(out, "(quiet)") {
			t.Errorf("%s: it is day: %s", command, out)
		}
	}
}

// TestStatusOfAnUnreadableMessage: a message that cannot be read counts as undelivered, and its file is named.
func TestStatusOfAnUnreadableMessage(t *testing.T) {
	t.Parallel()
	w := sound(t)
	w.write("state/outbox/r.1.jsonl/x", "")
	r := w.run("status")
	if !strings.Contains(r.out, "undelivered\t1\n") || !strings.Contains(r.errOut, "state/outbox/r.1.jsonl: is a directory\n") || r.status != 0 {
		t.Errorf("%+v", r)
	}
}
