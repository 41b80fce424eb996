package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
)

// asks is a turn that asks the owner which color, and one that goes on with the answer.
const asks = `turns:
  - - tool: ask_owner
      input: {question: "Which color?", choices: [red, green blue]}
    - text: I have asked
  - - expect: green blue
    - text: painted
  - - text: third
`

// question makes a routine that asks, fires it, and returns the id of its run, which waits.
func (w *world) question(script string, flags ...string) (run string) {
	w.t.Helper()
	w.script(script)
	if !slices.Contains(flags, "--update-main-session") {
		flags = append(flags, "--update-main-session", "freely")
	}
	w.must(append(append([]string{"routine", "add", "paint", "--cron", "0 9 * * *", "--background"}, flags...), "Paint the wall.")...)
	w.must("fire", "paint")
	record := w.last()
	if record["outcome"] != "waiting" || record["question"] == nil {
		w.t.Fatalf("outcome %v, question %v", record["outcome"], record["question"])
	}
	return record["id"].(string)
}

// allow makes these the allowed-tools of the routine paint, in its file.
func (w *world) allow(patterns ...string) {
	w.t.Helper()
	lines := slices.DeleteFunc(strings.SplitAfter(w.read("routines/paint.md"), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "allowed-tools:") || strings.HasPrefix(strings.TrimSpace(line), "- Bash")
	})
	w.write("routines/paint.md", strings.Join(slices.Insert(lines, 1, "allowed-tools: ["+strings.Join(patterns, ", ")+"]\n"), ""))
}

// approveJob approves a job as the owner does at a terminal, which a test in this process has not.
func (w *world) approveJob(name string) {
	w.t.Helper()
	h := homeOf(w.t, w.deps(strings.NewReader(""), io.Discard, io.Discard))
	book := h.Approvals
	files, err := job.Library{Home: paths.Dir(w.dir), Zone: time.UTC}.Load()
	if err != nil {
		w.t.Fatal(err)
	}
	j, err := files.Find(name)
	if err != nil {
		w.t.Fatal(err)
	}
	subject, _, err := book.Of(j)
	if err == nil {
		err = book.Approve(w.t.Context(), subject, approval.Owner)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// outcomeOf is the outcome of a run, as it is on disk.
func (w *world) outcomeOf(run string) string {
	w.t.Helper()
	o, _ := w.record(run)["outcome"].(string)
	return o
}

// questions is the names of the files of questions.
func (w *world) questions() int {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "state/questions/*.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(files)
}

// A run that has asked ends as waiting, at status 0, without lock or process, and goes on in its own session with the answer, once.
func TestQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"forked": nil, "isolated": {"--isolated"}, "persistent": {"--session", "persistent"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must("config", "set", "delivery.command", "sh", "-c", "cat >> "+w.home+"/mail")
			run := w.question(asks, flags...)
			mail, err := os.ReadFile(filepath.Join(w.home, "mail"))
			if want := "Which color?\n1. red\n2. green blue\n"; err != nil || !strings.Contains(string(mail), want) || !strings.Contains(string(mail), "ollim answer "+run+" N|TEXT") {
				t.Errorf("the owner was sent %q, %v", mail, err)
			}
			if list := w.must("run", "list"); !strings.Contains(list, "\twaiting\t") || !strings.Contains(list, "Which color?") {
				t.Errorf("run list: %s", list)
			}
			before := w.record(run)
			w.pass(3 * time.Hour)
			w.must("answer", "-w", "paint", "2")
			after := w.record(run)
			if n := len(w.runs()); n != 1 || after["outcome"] != "ok" || after["text"] != "painted" || after["question"] != nil {
				t.Errorf("%d runs, outcome %v, text %v", n, after["outcome"], after["text"])
			}
			if before["session_after"] != after["session_after"] || after["continued"] != float64(1) {
				t.Errorf("session %v became %v; continued %v", before["session_after"], after["session_after"], after["continued"])
			}
			prompt := w.read(runFile(run, "prompt-2.txt"))
			if !strings.HasPrefix(prompt, "[system] [2026-03-02 Mon 01:00 PM UTC]\n\nANSWER: ") || !strings.Contains(prompt, "(3 hours ago)") ||
				!strings.Contains(prompt, "\n- your question:\n  Which color?\n  1. red\n  2. green blue\n- the answer:\n  green blue\n") {
				t.Errorf("it went on with %q", prompt)
			}
			if first := w.read(runFile(run, "prompt.txt")); !strings.Contains(first, "Paint the wall.") {
				t.Errorf("the first prompt is now %q", first)
			}
			for _, again := range []string{"paint", run, "last"} {
				if r := w.run("answer", "-w", again, "red"); r.status != 65 || !strings.Contains(r.errOut, "it has ended (ok)") {
					t.Errorf("again: exit status %d, %s", r.status, r.errOut)
				}
			}
			if n := w.questions(); n != 0 {
				t.Errorf("%d questions are left", n)
			}
		})
	}
}

// What answer takes: a choice by its number, any other text as it is.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args   []string
		input  string
		status int
		want   string // the answer, or of the error
	}{
		{[]string{"1"}, "", 0, "red"},
		{[]string{"purple,", "please"}, "", 0, "purple, please"},
		{[]string{"-"}, "from a file\n", 0, "from a file"},
		{[]string{"3"}, "", 65, "there is no choice 3: want 1 to 2, or a text"},
		{[]string{"-1"}, "", 64, "unknown shorthand flag"},
		{[]string{" "}, "", 65, "the answer is empty"},
		{nil, "", 64, "no answer: give TEXT"},
	} {
		w := newWorld(t)
		run := w.question("turns: [[{tool: ask_owner, input: {question: 'Which?', choices: [red, green]}}], [{text: done}]]\n")
		r := w.pipe(tc.input, append([]string{"answer", "-w", run}, tc.args...)...)
		events := w.read(runFile(run, "events.jsonl"))
		if said := r.errOut + events; r.status != tc.status || !strings.Contains(said, tc.want) {
			t.Errorf("%q: exit status %d, %s", tc.args, r.status, said)
		}
		if waits := w.outcomeOf(run) == "waiting"; waits != (tc.status != 0) {
			t.Errorf("%q: it waits: %v", tc.args, waits)
		}
	}
}

// A run that asks can be found by its job while it is the only one; with two the answer must say which it means.
func TestAnswerByJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one := w.question(asks)
	w.must("fire", "paint")
	two := w.last()["id"].(string)
	if one == two || w.questions() != 2 {
		t.Fatalf("%s, %s: %d questions", one, two, w.questions())
	}
	if r := w.run("answer", "-w", "paint", "2"); r.status != 64 || !strings.Contains(r.errOut, "2 runs of paint wait for an answer: "+one+", "+two) {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	w.must("answer", "-w", one, "2")
	w.must("answer", "-w", "paint", "2")
	if w.outcomeOf(one) != "ok" || w.outcomeOf(two) != "ok" {
		t.Errorf("%s, %s", w.outcomeOf(one), w.outcomeOf(two))
	}
	if r := w.run("answer", "nobody", "2"); r.status != 66 {
		t.Errorf("no such run: exit status %d, %s", r.status, r.errOut)
	}
}

// The next fire of a persistent routine comes before the answer: the run goes on in the session as it is then.
func TestQuestionAcrossFires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(`turns:
  - - tool: ask_owner
      input: {question: "Which color?"}
  - - tool: compact_session
      input: {instructions: all}
    - text: second fire
  - - text: after the answer
`)
	w.must("routine", "add", "paint", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--update-main-session", "freely", "Paint.")
	w.must("fire", "paint")
	first := w.last()
	w.pass(time.Minute)
	w.must("fire", "paint")
	second := w.last()
	if second["outcome"] != "ok" || w.outcomeOf(first["id"].(string)) != "waiting" {
		t.Fatalf("%v while the first waits: %v", second["outcome"], w.outcomeOf(first["id"].(string)))
	}
	if p := w.prompt(); !strings.Contains(p, "NOTE: A question of an earlier fire") || !strings.Contains(p, "still waits for an answer") {
		t.Errorf("the second fire does not know of the question:\n%s", p)
	}
	w.must("answer", "-w", first["id"].(string), "red")
	after := w.record(first["id"].(string))
	if after["outcome"] != "ok" || after["session_after"] == first["session_after"] || after["session_after"] != second["session_after"] {
		t.Errorf("%v in session %v, want %v", after["outcome"], after["session_after"], second["session_after"])
	}
	if got := strings.TrimSpace(w.read("state/routine_sessions/" + w.routineID("paint"))); got != after["session_after"] {
		t.Errorf("the routine's session is %s", got)
	}
	w.must("fire", "paint")
	if p := w.prompt(); strings.Contains(p, "NOTE: A question") {
		t.Errorf("an answered question is still open:\n%s", p)
	}
}

// One question at a time; after the answer the run may ask again.
func TestOneQuestionAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("config", "set", "delivery.command", "true")
	run := w.question(`turns:
  - - tool: ask_owner
      input: {question: "First?"}
    - tool: ask_owner
      input: {question: "Twice?"}
    - tool: ping_user
      input: {message: hello}
  - - tool: ask_owner
      input: {question: "Second?"}
    - tool: ping_user
      input: {message: hello}
  - - tool: ping_user
      input: {message: bye}
    - text: done
on-nudge:
  - tool: report_updates
    input: {message: painted}
`, "--isolated", "--update-main-session", "on_ping")
	if events := w.read(runFile(run, "events.jsonl")); strings.Count(events, "This run waits for the answer to its question already. End your turn.") < 2 ||
		strings.Contains(events, `"nudge"`) {
		t.Errorf("events: %s", events)
	}
	w.must("answer", "-w", run, "one")
	if r := w.record(run); r["outcome"] != "waiting" || r["question"] != "Second?" {
		t.Errorf("%v: %v", r["outcome"], r["question"])
	}
	w.must("answer", "-w", run, "two")
	if r := w.record(run); r["outcome"] != "ok" || r["pings"] != float64(3) || r["reports"] != float64(1) || r["continued"] != float64(2) {
		t.Errorf("%v: %v pings, %v reports, continued %v", r["outcome"], r["pings"], r["reports"], r["continued"])
	}
}

// A question passes the gates of a ping.
func TestQuestionIsGated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ flag, why string }{
		"allow-ping":  {"--allow-ping=false", "Pings are disabled"},
		"budget":      {"--description=x", "No ping is left"},
		"sent before": {"--description=y", "already sent its one message"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("turns: [[{tool: ask_owner, input: {question: 'Which?'}}]]\n")
			switch name {
			case "budget":
				w.must("budget", "set", "--capacity", "0")
			case "sent before":
				w.script("turns: [[{tool: ping_user, input: {message: hi}}, {tool: report_updates, input: {message: hi}}, {tool: ask_owner, input: {question: 'Which?'}}]]\n")
			}
			w.must("routine", "add", "paint", "--cron", "0 9 * * *", "--background", tc.flag, "Paint.")
			w.must("fire", "paint")
			id := w.last()["id"].(string)
			if events := w.read(runFile(id, "events.jsonl")); !strings.Contains(events, tc.why) {
				t.Errorf("events: %s", events)
			}
			if w.outcomeOf(id) != "ok" || w.questions() != 0 {
				t.Errorf("%s, %d questions", w.outcomeOf(id), w.questions())
			}
		})
	}
}

// Report, after and the slot come once, at the final end.
func TestQuestionEndsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.writeProgram("gates/count", "#!/bin/sh\nsed 's/.*\"outcome\":\"//; s/\".*//' >> "+w.home+"/ended\n")
	w.writeProgram("gates/look", "#!/bin/sh\necho looked >> "+w.home+"/gated\n")
	w.pass(23*time.Hour + 5*time.Minute) // 09:05
	run := w.question(`turns:
  - - tool: ask_owner
      input: {question: "Which?"}
  - - text: done
on-nudge:
  - tool: report_updates
    input: {message: painted}
`, "--after", "count", "--gate", "look", "--unsealed", "after", "--unsealed", "gate", "--update-main-session", "always")
	ended := func() string {
		text, _ := os.ReadFile(filepath.Join(w.home, "ended"))
		return string(text)
	}
	if w.slotOf("paint") != "waiting" || ended() != "" || w.read("state/pending_updates.json") != "" && strings.Contains(w.read("state/pending_updates.json"), "painted") {
		t.Errorf("slot %q, after %q", w.slotOf("paint"), ended())
	}
	w.must("tick")
	if n := len(w.runs()); n != 1 {
		t.Fatalf("%d runs", n)
	}
	w.must("answer", "-w", run, "red")
	gated, _ := os.ReadFile(filepath.Join(w.home, "gated"))
	if w.slotOf("paint") != "ok" || ended() != "ok\n" || string(gated) != "looked\n" || !strings.Contains(w.read("state/pending_updates.json"), "painted") {
		t.Errorf("slot %q, after %q, gate %q: %s", w.slotOf("paint"), ended(), gated, w.read("state/pending_updates.json"))
	}
}

// slotOf is the outcome of a routine's latest claim.
func (w *world) slotOf(name string) string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "state/slots", w.routineID(name), "*"))
	if err != nil || len(files) == 0 {
		w.t.Fatal("no claim", err)
	}
	text, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		w.t.Fatal(err)
	}
	var claim struct{ Outcome string }
	if err := json.Unmarshal(text, &claim); err != nil {
		w.t.Fatal(err)
	}
	return claim.Outcome
}
