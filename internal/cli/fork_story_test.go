package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/session"
)

// openFork is state/fork.json; nil if there is none.
func (w *world) openFork() *session.Fork {
	w.t.Helper()
	text := w.read("state/fork.json")
	if text == "" {
		return nil
	}
	var f session.Fork
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		w.t.Fatal(err)
	}
	return &f
}

// try runs a command line that may fail, and moves the clock as must does.
func (w *world) try(args ...string) result {
	r := w.run(args...)
	w.pass(time.Second)
	return r
}

// delivers lets messages to the owner be appended to the file delivered.
func (w *world) delivers() {
	w.write("deliver.sh", "cat >> delivered\n")
	w.must("config", "set", "delivery.command", "sh", "deliver.sh")
}

// wants checks that each of the parts is in a text.
func (w *world) wants(text string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

const talkative = "turns:\n  - - text: one\n  - - text: two\n  - - text: three\n  - - text: four\n  - - text: five\n"

// TestChatGoesToTheOpenFork: the fork branches main, its turns leave main alone, and standard error says where a turn is.
func TestChatGoesToTheOpenFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(talkative)
	w.must("chat", "hello")
	main := w.read("state/sessions.json")
	r := w.try("fork", "start", "the", "trip")
	if r.status != 0 || r.out != "two\n" {
		t.Fatalf("start: %+v", r)
	}
	w.wants(w.prompt(), "[fork-started] [2026-03-02 Mon", "This is an interactive fork", "Topic: the trip")
	f := w.openFork()
	if f == nil || f.Topic != "the trip" || f.Parent != main || f.Session == "" || f.Session == main || f.Turns != 1 || f.Heard != 0 {
		t.Fatalf("the fork is %+v", f)
	}
	r = w.try("chat", "by train")
	if r.status != 0 || r.out != "three\n" || r.errOut != "ollim: fork: this turn is in the interactive fork: the trip\n" {
		t.Errorf("chat: %+v", r)
	}
	if p := w.prompt(); strings.Contains(p, "fork") || !strings.Contains(p, "by train") {
		t.Errorf("the prompt is\n%s", p)
	}
	if last := w.last(); last["mode"] != "fork" || last["conversation"] != "fork" || last["session_before"] != f.Session {
		t.Errorf("the record is %v", last)
	}
	if got := w.read("state/sessions.json"); got != main {
		t.Errorf("main is %s, want %s", got, main)
	}
	w.wants(w.read("sessions/script/"+f.Session+".jsonl"), `"parent_id":"`+main+`"`, "hello", "by train")
	w.wants(w.read("state/session_history.jsonl"), `"event":"interactive_fork"`, `"parent_session_id":"`+main+`"`)
	w.wants(w.must("fork", "status"), "topic\tthe trip\n", "turns\t2\n", "can be saved\tyes\n")
	if r := w.try("fork", "start"); r.status != 75 {
		t.Errorf("a second fork: %+v", r)
	}
	w.must("fork", "exit")
	if w.openFork() != nil {
		t.Error("the fork is open after exit")
	}
	if r := w.try("chat", "back"); r.errOut != "" || w.last()["session_after"] != main {
		t.Errorf("chat after exit: %+v", r)
	}
	for _, verb := range []string{"status", "save", "report", "exit"} {
		if r := w.try("fork", verb); r.status != 66 || !strings.Contains(r.errOut, "no fork is open") {
			t.Errorf("%s without a fork: %+v", verb, r)
		}
	}
}

// TestForkWithoutATopic costs nothing before the first message, which then tells the agent where it is.
func TestForkWithoutATopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(talkative)
	w.must("fork", "start")
	if n := len(w.runs()); n != 0 {
		t.Errorf("%d runs", n)
	}
	for _, verb := range []string{"save", "report"} {
		if r := w.try("fork", verb); r.status != 66 || !strings.Contains(r.errOut, "no turn of the fork has ended yet") {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	w.must("chat", "taxes")
	w.wants(w.prompt(), "[fork-started]", "No topic was given", "\n\ntaxes\n")
	w.must("chat", "more")
	if p := w.prompt(); strings.Contains(p, "fork-started") {
		t.Errorf("the second message is\n%s", p)
	}
}

// TestForkShowsUpdatesOnce: the fork reads what is pending, each update once, and uses none up.
func TestForkShowsUpdatesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(talkative)
	w.must("update", "add", "oil broke 75")
	w.must("fork", "start")
	w.must("chat", "hi")
	w.wants(w.prompt(), "RECENT BACKGROUND UPDATES (read-only — main session will also see these):\n- (", "oil broke 75")
	w.must("update", "add", "gas broke 3")
	w.must("chat", "and?")
	if p := w.prompt(); strings.Contains(p, "oil broke") || !strings.Contains(p, "gas broke 3") {
		t.Errorf("the second turn is shown\n%s", p)
	}
	w.must("chat", "and now?")
	if p := w.prompt(); strings.Contains(p, "UPDATES") {
		t.Errorf("the third turn is shown\n%s", p)
	}
	w.must("fork", "exit")
	w.must("chat", "main?")
	w.wants(w.prompt(), "RECENT BACKGROUND UPDATES (mention key findings in your response):", "oil broke 75", "gas broke 3")
}

// TestForkSave: the fork becomes main, unless main had a turn since it began.
func TestForkSave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script(talkative)
	w.must("chat", "hello")
	main := w.read("state/sessions.json")
	w.must("fork", "start", "a plan")
	fork := w.openFork().Session
	w.must("fork", "save")
	if got := w.read("state/sessions.json"); got != fork || w.openFork() != nil {
		t.Errorf("main is %s, want %s; fork %+v", got, fork, w.openFork())
	}
	w.wants(w.read("state/session_history.jsonl"), `{"session_id":"`+fork+`","event":"swapped","timestamp":"2026-03-02T10:00:`, `"parent_session_id":"`+main+`"}`)
	w.must("chat", "go on")
	if w.last()["session_before"] != fork {
		t.Errorf("the next turn goes on from %v", w.last()["session_before"])
	}

	w.must("fork", "start", "another plan")
	w.write("routines/look.md", lookForeground)
	w.must("fire", "look")
	if last := w.last(); last["conversation"] != "main" || last["session_before"] != fork {
		t.Errorf("a foreground routine went to %v", last)
	}
	if r := w.try("fork", "save"); r.status != 75 || !strings.Contains(r.errOut, "main session has gone on") || !strings.Contains(r.errOut, "hint: ollim fork report") {
		t.Errorf("save: %+v", r)
	}
	if w.openFork() == nil {
		t.Error("the fork is gone after a save that was refused")
	}
	w.wants(w.must("fork", "status"), "can be saved\tno: the main session has gone on")
}

// TestForkReport: the agent's summary becomes an update and the fork is dropped; ollim says so if there is none.
func TestForkReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n  - - tool: report_updates\n      input: {message: go by train}\n    - text: told\n")
	w.must("fork", "start", "the trip")
	if r := w.try("fork", "report"); r.status != 0 || r.out != "told\n" || !strings.Contains(r.errOut, "fork: ended; a pending update reports it") {
		t.Errorf("%+v", r)
	}
	w.wants(w.prompt(), "[system] [2026", "Call `report_updates` now")
	if w.openFork() != nil || !strings.Contains(w.must("update", "list"), "go by train") {
		t.Errorf("the fork is %+v, the updates are %s", w.openFork(), w.must("update", "list"))
	}

	w.script("turns:\n  - - text: one\n  - - text: nothing to say\non-nudge:\n  - text: still nothing\n")
	w.must("fork", "start", "the\tother trip")
	w.must("fork", "report")
	if events := w.must("run", "log", "last"); strings.Count(events, "nudge") != 2 {
		t.Errorf("the events are\n%s", events)
	}
	if w.openFork() != nil || !strings.Contains(w.must("update", "list"), "its agent left no summary. Its topic was: the") {
		t.Errorf("the fork is %+v, the updates are %s", w.openFork(), w.must("update", "list"))
	}

	w.script("turns:\n  - - text: one\n  - - error: broken\n")
	w.must("fork", "start", "a third trip")
	if r := w.try("fork", "report"); r.status != 1 || w.openFork() == nil {
		t.Errorf("a failed report: %+v, the fork is %+v", r, w.openFork())
	}
}

// TestAgentEndsTheFork by its tools, not before the owner has said something.
func TestAgentEndsTheFork(t *testing.T) {
	t.Parallel()
	for tool, c := range map[string]struct {
		input string
		line  string
		main  bool // the fork becomes main
		news  string
	}{
		"exit_fork":      {"{}", "fork: ended and dropped", false, ""},
		"save_context":   {"{}", "fork: saved; it is the main conversation now", true, ""},
		"report_updates": {"{message: decided}", "fork: ended; a pending update reports it", false, "decided"},
	} {
		t.Run(tool, func(t *testing.T) {
			w := newWorld(t)
			use := "  - - tool: " + tool + "\n      input: " + c.input + "\n    - text: bye\n"
			w.script("turns:\n  - - text: hello\n" + use + use)
			w.must("chat", "hi")
			main := w.read("state/sessions.json")
			w.must("fork", "start", "a plan")
			f := w.openFork()
			if f == nil {
				t.Fatal("the agent ended the fork before the owner had a turn")
			}
			w.wants(w.must("run", "log", "last"), "The owner has said nothing in this fork yet")
			if got := w.must("update", "list"); got != "" {
				t.Errorf("updates %q", got)
			}
			r := w.try("chat", "fine, that is all")
			if r.status != 0 || r.out != "bye\n" || !strings.Contains(r.errOut, c.line) {
				t.Errorf("%+v", r)
			}
			want := main
			if c.main {
				want = f.Session
			}
			if got := w.read("state/sessions.json"); got != want || w.openFork() != nil {
				t.Errorf("main is %s, want %s; fork %+v", got, want, w.openFork())
			}
			if got := w.must("update", "list"); !strings.Contains(got, c.news) || (got == "") != (c.news == "") {
				t.Errorf("updates %q", got)
			}
		})
	}
}

// TestAgentEntersAFork: it opens after the turn of main, branches main with that turn, and its first turn follows.
func TestAgentEntersAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - tool: enter_fork\n      input: {topic: taxes}\n    - text: I open a fork.\n  - - text: Which year?\n  - - text: ok\n")
	r := w.try("chat", "let us do the taxes")
	if r.status != 0 || r.out != "I open a fork.\nWhich year?\n" || !strings.Contains(r.errOut, "fork: opened: taxes") { // both answers, also in a pipe
		t.Errorf("%+v", r)
	}
	f, runs := w.openFork(), w.runs()
	if f == nil || f.Topic != "taxes" || f.ID != f.MainRun || f.Parent != w.read("state/sessions.json") || len(runs) != 2 {
		t.Fatalf("the fork is %+v, of %d runs", f, len(runs))
	}
	w.wants(w.read("sessions/script/"+f.Session+".jsonl"), "let us do the taxes", "I open a fork.", "Topic: taxes")
	w.must("fork", "save")
	if got := w.read("state/sessions.json"); got != f.Session {
		t.Errorf("main is %s, want %s", got, f.Session)
	}
}

// TestAnswerBeforeADeadFork: the answer of main is printed once, also if the first turn of the fork fails.
func TestAnswerBeforeADeadFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - tool: enter_fork\n      input: {topic: taxes}\n    - text: I open a fork.\n  - - text: Which\n    - error: broken\n")
	if r := w.try("chat", "let us do the taxes"); r.status != 0 || r.out != "I open a fork.\n" {
		t.Errorf("%+v", r)
	}
}

// TestForegroundJobEntersAFork: what the agent says there first is delivered, as nobody is at a terminal.
func TestForegroundJobEntersAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.delivers()
	w.script("turns:\n  - - tool: enter_fork\n      input: {topic: taxes}\n    - text: I open a fork.\n  - - text: Which year?\n")
	w.write("routines/look.md", lookForeground)
	w.must("fire", "look")
	w.wants(w.read("delivered"), "I open a fork.\n", "Which year?\n")
	if f := w.openFork(); f == nil || f.Turns != 1 {
		t.Errorf("the fork is %+v", f)
	}
}

// TestDeadFirstTurn: a fork whose first turn failed is open with its topic, and the next message begins it.
func TestDeadFirstTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - error: broken\n")
	if r := w.try("fork", "start", "a plan"); r.status != 1 || !strings.Contains(r.errOut, "it is open although its first turn failed") {
		t.Errorf("%+v", r)
	}
	if f := w.openFork(); f == nil || f.Topic != "a plan" || f.Turns != 0 {
		t.Fatalf("the fork is %+v", f)
	}
	w.script(talkative)
	w.must("chat", "go")
	w.wants(w.prompt(), "[fork-started]", "Topic: a plan", "\n\ngo\n")

	// the engine kept nothing of the session that the dead turn had begun: the parent is branched again
	w.must("fork", "exit")
	w.must("chat", "in main")
	w.must("fork", "start", "b plan")
	f := w.openFork()
	if err := os.Remove(filepath.Join(w.dir, "sessions/script", f.Session+".jsonl")); err != nil {
		t.Fatal(err)
	}
	f.Turns = 0
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	w.write("state/fork.json", string(data))
	w.must("chat", "go")
	if p := w.prompt(); strings.Contains(p, "is gone") || w.openFork().Session == f.Session {
		t.Errorf("the prompt is\n%s", p)
	}
	w.wants(w.read("sessions/script/"+w.openFork().Session+".jsonl"), "in main", "Topic: b plan")
}

// TestIdleFork is asked twice to end, ten minutes apart, and is never ended by time.
func TestIdleFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.delivers()
	w.script(talkative)
	w.must("fork", "start", "a plan")
	nudge := func(want int) string {
		t.Helper()
		before := len(w.runs())
		w.must("fork", "nudge")
		if n := len(w.runs()) - before; n != want {
			t.Errorf("%d runs, want %d", n, want)
		}
		return w.prompt()
	}
	w.pass(9 * time.Minute)
	nudge(0)
	w.pass(time.Minute)
	w.wants(nudge(1), "[fork-timeout] [2026", "for 10 minutes", "ask the owner in one sentence")
	nudge(0)
	w.pass(10 * time.Minute)
	w.wants(nudge(1), "for 20 minutes", "This is the last reminder")
	w.pass(24 * time.Hour)
	nudge(0)
	w.wants(w.read("delivered"), "two\n", "three\n")
	w.must("chat", "I am back")
	w.pass(10 * time.Minute)
	w.must("pause")
	nudge(0)
	w.must("resume")
	w.wants(nudge(1), "for 10 minutes")
	if w.openFork() == nil {
		t.Error("the fork was ended by time")
	}
}

// TestForkInTheLoop: /fork opens a fork without a turn, shows it and ends it.
func TestForkInTheLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n  - - text: told\n    - tool: report_updates\n      input: {message: decided}\n")
	var out, errOut strings.Builder
	d := w.deps(strings.NewReader(""), &out, &errOut)
	h := homeOf(t, d)
	d.Out = &out
	d.atPrompt = true
	l := &chatLoop{d: d, h: h}
	for _, args := range []string{"taxes", "", "exit", "the trip", "other", "save"} {
		err := l.fork(t.Context(), args)
		if refused := args == "save" || args == "other"; (err == nil) == refused {
			t.Fatalf("/fork %s: %v", args, err)
		}
	}
	d.atPrompt = false
	w.wants(errOut.String(), "the fork is open: your next message is in it", "the fork is dropped")
	if strings.Contains(out.String(), "last turn") {
		t.Errorf("a fork without a turn has a time of the last one: %s", out.String())
	}
	if f := w.openFork(); f == nil || f.Topic != "the trip" || len(w.runs()) != 0 || !strings.Contains(out.String(), "topic\ttaxes\n") {
		t.Errorf("the fork is %+v after %d runs; %s", w.openFork(), len(w.runs()), out.String())
	}
	w.must("chat", "by train")
	w.wants(w.prompt(), "Topic: the trip", "\n\nby train\n")
	if err := l.fork(t.Context(), "report"); err != nil || w.openFork() != nil {
		t.Errorf("/fork report: %v, the fork is %+v", err, w.openFork())
	}
}
