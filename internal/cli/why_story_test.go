package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app/trace"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// why returns the steps that ollim why prints as JSON.
func (w *world) why(args ...string) (steps []trace.Step) {
	w.t.Helper()
	for line := range strings.Lines(w.must(append([]string{"why", "--json"}, args...)...)) {
		var s trace.Step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
		steps = append(steps, s)
	}
	return steps
}

// stepsOf names the steps: the step and its kind or tool.
func stepsOf(steps []trace.Step) string {
	var names []string
	for _, s := range steps {
		name := s.Step
		switch {
		case s.Tool != "":
			name += ":" + s.Tool
		case s.Step == trace.Source, s.Step == trace.Message:
			name += ":" + s.Kind
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// lineAt returns the line of the file of a step.
func (w *world) lineAt(s trace.Step) string {
	w.t.Helper()
	lines := strings.Split(w.read(s.File), "\n")
	if s.Line < 1 || s.Line > len(lines) {
		w.t.Fatalf("%s has no line %d", s.File, s.Line)
	}
	return lines[s.Line-1]
}

// TestWhyAPing: the words of a ping, and its id, lead through the run to the result of the tool that has them, and to its request.
func TestWhyAPing(t *testing.T) {
	t.Parallel()
	w, _ := newJudgedWorld(t, 2, wise) // the second fire is quiet
	id := w.runs()[0]["id"].(string)
	for _, args := range [][]string{{"The disk is 95 % full."}, {"the", "DISK", "is", "95"}, {id + ".1"}, {id}} {
		steps := w.why(args...)
		want := "message:ping run source:Read source:task"
		if args[0] == id {
			want = "run message:ping source:Read source:task"
		}
		if got := stepsOf(steps); got != want {
			t.Fatalf("%q: %s, want %s", args, got, want)
		}
		for _, s := range steps {
			switch s.Step {
			case trace.Message:
				if s.ID != id+".1" || s.Text != "The disk is 95 % full." || !strings.Contains(w.lineAt(s), `"type":"ping"`) {
					t.Errorf("%+v", s)
				}
			case trace.Run:
				if s.Run != id || s.Name != "disk" || s.Outcome != "ok" || s.Why != "a command fired it" {
					t.Errorf("%+v", s)
				}
			}
		}
		read, task := steps[2], steps[3]
		line := w.lineAt(read)
		if !strings.Contains(line, `"type":"tool_result"`) || !strings.Contains(line, "disk 95 % used") || !strings.Contains(read.Text, "disk 95 % used") {
			t.Errorf("the result: %+v\n%s", read, line)
		}
		if read.Command != "ollim run show "+id+" --request 2" || task.Command != "ollim run show "+id+" --request 1" {
			t.Errorf("commands: %q, %q", read.Command, task.Command)
		}
		w.wants(w.must(strings.Fields(read.Command)[1:]...), "disk 95 % used")
		w.wants(w.lineAt(task), "Read data/disk.txt. Ping if")
	}
	r := w.onColumns(80, "why", "disk is 95 % full")
	w.wants(r.out, "ping "+id+".1, ", "\n    The disk is 95 % full.\n    state/runs/2026/03/02/"+id+"/events.jsonl:", "\nRead {\"file_path\":\"data/disk.txt\"}, 2 of ",
		"\n    ollim run show "+id+" --request 2\n")
	for line := range strings.Lines(r.out) {
		if len(line) > 81 && strings.Contains(strings.TrimSpace(line), " ") && !strings.Contains(line, "ollim run show") {
			t.Errorf("too long: %q", line)
		}
	}
}

// TestWhyData: the output of a gate and piped input are sources; the line is that in the prompt.
func TestWhyData(t *testing.T) {
	t.Parallel()
	w := newWorld(t).phone().world
	w.script("turns: [[{tool: ping_user, input: {message: Release 4.7.1 of zephyr is out}}, {tool: report_updates, input: {message: r}}, {text: done}]]\n")
	w.gated("releases", "echo two lines; echo zephyr 4.7.1")
	w.must("routine", "add", "review", "--cron", "0 9 * * *", "--background", "--isolated", "Go.")
	for kind, fire := range map[string]func(){
		"gate output": func() { w.must("fire", "releases") },
		"piped input": func() {
			if r := w.pipe("changes\nzephyr 4.7.1\n", "fire", "review", "-"); r.status != 0 {
				t.Fatal(r)
			}
		},
	} {
		fire()
		steps := w.why("4.7.1", "zephyr")
		if got := stepsOf(steps); got != "message:ping run source:"+kind {
			t.Fatalf("%s: %s", kind, got)
		}
		w.wants(w.lineAt(steps[2]), "zephyr", "4.7.1")
		w.pass(6 * time.Hour)
	}
}

// TestWhyAnUpdate: what main says leads to the update that it was told, to the run that reported it, and to what that run had read.
func TestWhyAnUpdate(t *testing.T) {
	t.Parallel()
	w, _ := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
		switch {
		case q.Has("what is new"):
			return anthropicapi.Reply{Text: "Good news: Gromit won 3 medals at Plovdiv."}
		case !q.Has("Plovdiv"):
			return anthropicapi.Use("Read", map[string]string{"file_path": "data/sport.txt"})
		case !q.Has("Reported: "):
			return anthropicapi.Use("report_updates", map[string]string{"message": "Gromit won 3 medals at Plovdiv"})
		}
		return anthropicapi.Reply{Text: "Done."}
	})
	w.write("data/sport.txt", "nothing\nPlovdiv: Gromit, medals: 3\n")
	w.must("routine", "add", "sport", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Read(./**)", "Read data/sport.txt.")
	w.must("fire", "sport")
	reporter := w.last()["id"].(string)
	var updates []struct{ ID string }
	for line := range strings.Lines(w.must("update", "list", "--json")) {
		updates = append(updates, struct{ ID string }{})
		if err := json.Unmarshal([]byte(line), &updates[len(updates)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if got := stepsOf(w.why(updates[0].ID)); got != "update run source:Read" {
		t.Errorf("the pending update: %s", got)
	}
	w.must("chat", "what is new?")
	main := w.last()["id"].(string)
	steps := w.why("Gromit won 3 medals at Plovdiv.")
	if got := stepsOf(steps); got != "message:answer run source:updates update run source:Read" {
		t.Fatalf("%s", got)
	}
	if s := steps[1]; s.Run != main || s.Why != "a message of the owner" {
		t.Errorf("main: %+v", s)
	}
	if s := steps[3]; s.ID != updates[0].ID || s.Run != reporter || s.Why != "popped by run "+main || !strings.Contains(w.lineAt(s), `"type":"report"`) {
		t.Errorf("the update: %+v", s)
	}
	if s := steps[5]; s.Run != reporter || !strings.Contains(w.lineAt(s), "Plovdiv: Gromit, medals: 3") {
		t.Errorf("the source: %+v", s)
	}
	w.wants(w.lineAt(steps[2]), "Gromit won 3 medals")
}

// TestWhyNothingRan: the name of a job whose last slot did not reach the agent leads to the reason, as the audit has it.
func TestWhyNothingRan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns: [[{text: done}]]\n")
	w.gated("shut", "exit 1")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Go.")
	w.must("tick")
	w.pass(23 * time.Hour) // Tuesday 09:00
	for _, job := range []string{"shut", "daily"} {
		if job == "daily" {
			w.must("pause")
		}
		w.run("fire", "--scheduled", job)
	}
	if s := w.why("shut"); s[0].Step != trace.Slot || s[0].Outcome != "gated" || s[0].Why != "its schedule; its gate found nothing to do" || s[0].Slot == nil {
		t.Errorf("gated: %+v", s)
	}
	if s := w.why("daily"); s[0].Step != trace.Slot || s[0].Outcome != "paused" || !strings.Contains(s[0].Why, "its schedule; ") {
		t.Errorf("paused: %+v", s)
	}
	w.must("resume")
	w.pass(24*time.Hour + time.Hour) // the machine was off on Wednesday
	for range 3 {
		w.must("tick")
		w.pass(10 * time.Minute)
	}
	w.must("fire", "daily")
	w.pass(24 * time.Hour)
	for range 3 {
		w.must("tick")
		w.pass(10 * time.Minute)
	}
	s := w.why("daily")
	if got := stepsOf(s); !strings.HasPrefix(got, "slot run") || s[0].Outcome != "missed" || !strings.HasPrefix(s[0].Why, "nothing ran: ") || s[0].Command != "ollim schedule audit daily" {
		t.Errorf("missed: %s %+v", got, s[0])
	}
	w.wants(w.must("schedule", "audit", "daily"), s[0].Slot.Format(time.RFC3339)+"\tmissed")
}

// TestWhyOtherWords: words that no message has lead to the runs that have them; words in no record exit 66.
func TestWhyOtherWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns: [[{tool: Bash, input: {command: echo quokka-58}}, {text: quiet}]]\n")
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "Look.")
	w.must("fire", "watch")
	r := w.run("why", "quokka-58")
	if r.status != 0 || !strings.Contains(r.errOut, "no message or update has these words") || !strings.HasPrefix(r.out, "tool_use, run "+w.last()["id"].(string)) {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"wombat"}, {"two", "wombats"}, {"%"}} {
		if r := w.run(append([]string{"why"}, args...)...); r.status != int(statusNoJob) || r.out != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := w.run("why", " "); r.status != int(statusUsage) {
		t.Errorf("nothing: %+v", r)
	}
}

// TestWhyOfHostileRecord: no text in a record makes a line of its own or a control character in the output.
func TestWhyOfHostileRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t).phone().world
	forged := "numbat 77\x1b[2K\nping forged, Mon\u2028run forged\r    ollim run show forged"
	quoted, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	w.script(`turns: [[{tool: ping_user, input: {message: ` + string(quoted) + `}}, {tool: report_updates, input: {message: r}}, {text: done}]]` + "\n")
	w.must("routine", "add", "evil", "--cron", "0 9 * * *", "--background", "--isolated", "--description", "d", "Go.")
	if r := w.pipe(forged, "fire", "evil", "-"); r.status != 0 {
		t.Fatal(r)
	}
	id := w.last()["id"].(string)
	name := runFile(id, "events.jsonl") // a tool whose name and input are hostile
	events := strings.SplitAfterN(w.read(name), "\n", 2)
	use, err := json.Marshal(map[string]any{"at": w.clock(), "type": "tool_use", "tool": "Read\nping forged", "tool_id": "x", "input": map[string]string{"p\u2028q": forged}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := json.Marshal(map[string]any{"at": w.clock(), "type": "tool_result", "tool": "Read\nping forged", "tool_id": "x", "text": forged})
	if err != nil {
		t.Fatal(err)
	}
	w.write(name, string(use)+"\n"+string(result)+"\n"+strings.Join(events, ""))
	for _, out := range []string{w.must("why", "numbat 77"), w.onColumns(80, "why", "numbat 77").out, w.must("why", "--json", "numbat 77")} {
		if !strings.Contains(out, "numbat 77") || strings.ContainsAny(out, "\x1b\r\u2028") {
			t.Errorf("%q", out)
		}
		for line := range strings.Lines(out) {
			for _, start := range []string{"ping forged", "run forged", "    ollim run show forged"} {
				if strings.HasPrefix(line, start) {
					t.Errorf("forged: %q in\n%s", line, out)
				}
			}
		}
	}
}

// TestWhyInsideARun: without a pattern, an agent sees only what its own job said.
func TestWhyInsideARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t).phone().world
	for _, job := range []string{"other", "mine"} {
		w.script("turns: [[{tool: ping_user, input: {message: " + job + " saw a numbat}}, {tool: report_updates, input: {message: " + job + " saw a bilby}}, {text: done}]]\n")
		w.must("routine", "add", job, "--cron", "0 9 * * *", "--background", "--isolated", "Go.")
		w.must("fire", job)
		w.pass(6 * time.Hour)
	}
	all := w.runs()
	other, mine := all[0]["id"].(string), all[1]["id"].(string)
	w.must("update", "add", "the owner saw a dingo")
	defer w.inRun()()
	for _, tc := range []struct {
		args string
		sees bool
	}{
		{"mine saw a numbat", true}, {"mine saw a bilby", true}, {mine, true}, {mine + ".1", true}, {"mine", true}, {"numbat", true},
		{"other saw a numbat", false}, {"other saw a bilby", false}, {other, false}, {other + ".1", false}, {"other", false}, {"the owner saw a dingo", false},
	} {
		var out, errOut bytes.Buffer
		d := w.deps(strings.NewReader(""), &out, &errOut)
		d.own = true
		status := execute(t.Context(), d, []string{"why", tc.args})
		if (status == 0) != tc.sees || !tc.sees && status != int(statusNoJob) {
			t.Errorf("%s: exit status %d, %s%s", tc.args, status, out.String(), errOut.String())
		}
		if strings.Contains(out.String(), other) || strings.Contains(out.String(), "other saw") {
			t.Errorf("%s shows another job:\n%s", tc.args, out.String())
		}
	}
}
