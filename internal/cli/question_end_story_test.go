package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The file of a reminder stays in firing/ until the run has ended; neither tick nor a fire runs it again meanwhile.
func TestReminderWaits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer  bool
		outcome string
	}{"answered": {true, "ok"}, "expired": {false, "expired"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("turns: [[{tool: ask_owner, input: {question: 'Which?', expires: 2h}}], [{text: done}]]\n")
			id := w.reminder("--in", "1m", "--isolated", "--update-main-session", "freely", "Paint.")
			w.pass(2 * time.Minute)
			w.must("fire", id)
			run := w.last()["id"].(string)
			for range 3 {
				w.pass(20 * time.Minute)
				if plan := w.must("tick", "--dry-run"); plan != "" {
					t.Errorf("tick would %s", plan)
				}
				w.must("fire", id)
			}
			if n := len(w.runs()); n != 1 || w.read("state/firing/"+id+".md") == "" || w.outcomeOf(run) != "waiting" {
				t.Fatalf("%d runs, %s", n, w.outcomeOf(run))
			}
			if tc.answer {
				w.must("answer", "-w", run, "red")
			} else {
				w.pass(2 * time.Hour)
				if r := w.run("answer", "--continue", run); r.status != 1 || !strings.Contains(r.errOut, "expired: no answer came until 2026-03-02 12:") {
					t.Errorf("exit status %d, %s", r.status, r.errOut)
				}
			}
			if w.outcomeOf(run) != tc.outcome || w.read("state/firing/"+id+".md") != "" || w.questions() != 0 {
				t.Errorf("%s, %d questions, file %q", w.outcomeOf(run), w.questions(), w.read("state/firing/"+id+".md"))
			}
		})
	}
}

// A question that expires ends its run. The owner is notified, the agent of the routine reads it in its next fire, once.
func TestQuestionExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.question("turns: [[{tool: ask_owner, input: {question: 'Which?', expires: 1h30m}}], [{text: two}], [{text: three}]]\n", "--session", "persistent")
	w.pass(time.Hour)
	if r := w.run("answer", "--continue", run); r.status != 65 || !strings.Contains(r.errOut, "its question has no answer yet") {
		t.Errorf("too early: exit status %d, %s", r.status, r.errOut)
	}
	w.pass(time.Hour)
	if r := w.run("answer", "-w", run, "red"); r.status != 65 || !strings.Contains(r.errOut, "its question expired at 2026-03-02 11:30") {
		t.Errorf("late: exit status %d, %s", r.status, r.errOut)
	}
	if r := w.run("answer", "--continue", run); r.status != 1 || w.outcomeOf(run) != "expired" {
		t.Errorf("exit status %d, %s: %s", r.status, w.outcomeOf(run), r.errOut)
	}
	if pending := w.read("state/pending_updates.json"); !strings.Contains(pending, "paint has ended: nobody answered its question of 2026-03-02 10:00 (Which?).") {
		t.Errorf("the owner reads %s", pending)
	}
	for _, note := range []bool{true, false} {
		w.must("fire", "paint")
		if p := w.prompt(); strings.Contains(p, "was not answered in time") != note {
			t.Errorf("want the note: %v\n%s", note, p)
		}
	}
}

// While everything is paused, or the job is not approved, an answer is kept.
func TestAnswerIsKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hold, free func(w *world)
		status     int
		why        string
	}{
		"paused": {
			func(w *world) { w.must("pause") }, func(w *world) { w.must("resume") }, 75, "the answer is kept: everything is paused",
		},
		"not approved": {
			func(w *world) {
				w.allow("Bash(date)")
			},
			func(w *world) { w.approveJob("paint") }, 77, "the answer is kept: not approved: allowed-tools",
		},
		"disabled": {
			func(w *world) { w.must("routine", "disable", "paint") }, func(w *world) { w.must("routine", "enable", "paint") }, 75, "the answer is kept: enabled: false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.question(asks)
			tc.hold(w)
			if r := w.run("answer", "-w", run, "2"); r.status != tc.status || !strings.Contains(r.errOut, tc.why) {
				t.Errorf("exit status %d, %s", r.status, r.errOut)
			}
			if r := w.run("answer", "-w", run, "1"); r.status != 65 || !strings.Contains(r.errOut, "its question was answered at 2026-03-02 10:0") {
				t.Errorf("a second answer: exit status %d, %s", r.status, r.errOut)
			}
			w.pass(40 * 24 * time.Hour) // an answer does not expire
			if r := w.run("answer", "--continue", run); w.outcomeOf(run) != "waiting" || r.status != tc.status {
				t.Errorf("%s, exit status %d", w.outcomeOf(run), r.status)
			}
			tc.free(w)
			w.must("answer", "--continue", run)
			if w.outcomeOf(run) != "ok" {
				t.Error(w.outcomeOf(run))
			}
		})
	}
}

// A run whose job is gone cannot go on.
func TestAnswerWithoutAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.question(asks)
	w.must("routine", "rm", "paint")
	if r := w.run("answer", "-w", run, "2"); r.status != 77 || !strings.Contains(r.errOut, "its job no longer exists") || w.outcomeOf(run) != "refused" {
		t.Errorf("exit status %d, %s: %s", r.status, w.outcomeOf(run), r.errOut)
	}
}

// A run that goes on has the rights that it had and that its job still has.
func TestAnswerGrantsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.question(asks, "--allowed-tools", "Bash(date)", "--allowed-tools", "Bash(uptime)")
	w.allow("Bash(date)", "Bash(who)")
	w.approveJob("paint")
	w.must("answer", "-w", run, "2")
	tools := fmt.Sprint(w.record(run)["tools"])
	if !strings.Contains(tools, "Bash(date)") || strings.Contains(tools, "Bash(uptime)") || strings.Contains(tools, "Bash(who)") {
		t.Errorf("tools %s", tools)
	}
}

// Outside a run nobody asks; only the owner answers.
func TestAskAndAnswerElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.question(asks)
	for line, want := range map[string]struct {
		status int
		why    string
	}{
		"ping --ask Which?":               {64, "--ask works only inside a run"},
		"ping --choice a Which?":          {64, "--choice and --expires need --ask"},
		"ping --ask --critical Which?":    {64, "--ask takes TEXT alone"},
		"stop " + run:                     {1, "it waits for an answer"},
		"answer --continue " + run + " 2": {64, "--continue takes no answer"},
	} {
		if r := w.run(strings.Fields(line)...); r.status != want.status || !strings.Contains(r.errOut, want.why) {
			t.Errorf("%s: exit status %d, %s", line, r.status, r.errOut)
		}
	}
	w.must("routine", "add", "other", "--cron", "0 9 * * *", "--background", "Look.")
	w.script("turns: [[{text: done}]]\n")
	w.must("fire", "other")
	leave := w.inRun()
	if r := w.run("answer", "-w", run, "2"); r.status != 77 || w.outcomeOf(run) != "waiting" {
		t.Errorf("inside a run: exit status %d, %s", r.status, r.errOut)
	}
	if r := w.run("ping", "--ask", "--choice", "a", "--choice", "b", "--expires", "1h", "Which?"); r.status != 0 || !strings.Contains(r.errOut, "End your turn now.") {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	for line, why := range map[string]string{
		"ping --ask --expires 30s Which?": "expires: want 1m to 7d", "ping --ask --expires soon Which?": "is not a duration",
		"ping --ask --choice a --choice a Which?": "each choice once",
	} {
		if r := w.run(strings.Fields(line)...); r.status != 64 || !strings.Contains(r.errOut, why) {
			t.Errorf("%s: exit status %d, %s", line, r.status, r.errOut)
		}
	}
	leave()
}

// Status shows what waits, and no run that waits as failed. A reply to the message of the question answers it.
func TestStatusAndReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("config", "set", "delivery.command", "true")
	run := w.question(asks)
	if s := w.must("status"); !strings.Contains(s, "waiting\t10:00:0") || !strings.Contains(s, "\tpaint\tWhich color?\tuntil ") || strings.Contains(s, "failed") {
		t.Errorf("status: %s", s)
	}
	w.must("pause") // so that no process is started
	w.must("fork", "reply", run+".1", "2")
	if s := w.must("status"); !strings.Contains(s, "\tpaint\tWhich color?\tanswered\t"+run) {
		t.Errorf("status: %s", s)
	}
	w.must("resume")
	w.must("answer", "--continue", run)
	if w.outcomeOf(run) != "ok" {
		t.Error(w.outcomeOf(run))
	}
}

// A run whose question somebody has deleted can only end.
func TestDeletedQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.question(asks)
	if err := os.RemoveAll(filepath.Join(w.dir, "state/questions")); err != nil {
		t.Fatal(err)
	}
	if r := w.run("answer", "-w", run, "2"); r.status != 65 || !strings.Contains(r.errOut, "it does not wait for an answer") {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	if r := w.run("answer", "--continue", run); r.status != 1 || w.outcomeOf(run) != "expired" {
		t.Errorf("exit status %d, %s: %s", r.status, w.outcomeOf(run), r.errOut)
	}
}
