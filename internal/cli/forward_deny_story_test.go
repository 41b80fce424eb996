package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// newDiary is a world with a run of the owner's diary, a question at a shell, and two runs of a job of these patterns, whose socket
// it serves.
func newDiary(t *testing.T, patterns ...string) (w *world, socket string, diary, ask string) {
	t.Helper()
	w = newWorld(t)
	w.script("turns:\n  - - text: the wallet is under the stone\n")
	w.must("routine", "add", "diary", "--cron", "0 9 * * *", "--background", "--isolated", "Where is my wallet?")
	flags := []string{"routine", "add", "nosy", "--cron", "0 9 * * *", "--background", "--isolated"}
	for _, p := range patterns {
		flags = append(flags, "--allowed-tools", p)
	}
	w.must(append(flags, "Look.")...)
	w.must("task", "add", "buy milk")
	w.must("fire", "diary")
	diary = w.last()["id"].(string)
	w.must("-p", "-n", "what is under the stone?")
	ask = w.last()["id"].(string)
	w.script("turns:\n  - - text: mine\n")
	w.must("fire", "nosy")
	w.must("fire", "nosy")
	return w, w.socket(), diary, ask
}

// A program of a job that no pattern allows a command of ollim gets its own job's records, and nothing else of the owner's.
func TestForwardedWithoutPattern(t *testing.T) {
	t.Parallel()
	w, at, diary, ask := newDiary(t, "Bash(bash *)")
	own := w.runs()[2]["id"].(string)
	for line, want := range map[string]string{
		"run list": own, "run list --json": own, "run ls": own, "-q runs list": own, "run show last": `"name": "nosy"`, "run show nosy~1": own, "run log " + own: "text mine",
		"run show " + own: own, "events": own, "events --since 1d": own, "help": "Commands of ollim", "help run": "run", "version": "ollim", "--version": "ollim",
		"reminder list": "", "update add found it": "", "changed key": "+ text",
	} {
		r := w.forwarded(at, "text\n", strings.Fields(line)...)
		if r.status != 0 || !strings.Contains(r.out, want) || strings.Contains(r.out, diary) || strings.Contains(r.out, ask) || strings.Contains(r.out, "wallet") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	for _, line := range []string{"run show " + diary, "run show " + ask, "run show " + diary[:18], "run log " + diary, "run log diary", "run show --request 1 diary", "run show ask", "run log diary~0"} {
		if r := w.forwarded(at, "", strings.Fields(line)...); r.status != int(statusNoJob) || r.out != "" {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if r := w.forwarded(at, "", "run", "list", "diary"); r.out != "" {
		t.Errorf("run list diary: %+v", r)
	}
	refused := []string{"", "run", "run --json list", "session --all id list", "session compact --engine x list", "run x list", "task", "status --help", "session id main"}
	for _, verb := range commandsOfAgents()["all"] {
		refused = append(refused, verb, verb+" x", "-q "+verb)
	}
	for _, line := range refused {
		r := w.forwarded(at, "", strings.Fields(line)...)
		if r.status != int(statusRefused) || r.out != "" || !strings.Contains(r.errOut, "not allowed") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	for _, line := range []string{"session compact main keep it", "session compact routine:diary keep it", "session compact n-01 keep it"} {
		if r := w.forwarded(at, "", strings.Fields(line)...); r.status != int(statusRefused) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// What a pattern allows a program to send is what it allows as a command of Bash: exactly its words, and then as much as they show.
func TestForwardedByPattern(t *testing.T) {
	t.Parallel()
	w, at, diary, ask := newDiary(t, "Bash(bash *)", "Bash(ollim run list *)", "Bash(ollim run log diary)", "Bash(ollim status)")
	for line, want := range map[string]string{
		"run list": diary, "run list ask": ask, "run list diary": diary, "run log diary": "wallet", "status": "running", "tasks list": "buy milk", "tasks add x": "2",
	} {
		if r := w.forwarded(at, "", strings.Fields(line)...); r.status != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%s: %+v", line, r)
		}
	}
	for _, line := range []string{"task list", "status --json", "routine list", "update list"} { // not the words of a pattern
		if r := w.forwarded(at, "", strings.Fields(line)...); r.status != int(statusRefused) || !strings.Contains(r.errOut, "matches none of the allowed patterns: ") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	for line, never := range map[string]string{"run log " + diary: "wallet", "run log ask": "wallet", "-q run list": diary, "runs list": diary, "events": diary} {
		if r := w.forwarded(at, "", strings.Fields(line)...); strings.Contains(r.out, never) {
			t.Errorf("%s: %+v", line, r)
		}
	}
}

// A key of changed is that of the run's job: no other job finds its value, or makes a change look old.
func TestForwardedChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n    - delay: 1m\n")
	w.must("routine", "add", "gate", "--id", "gate", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Bash(ollim changed releases)", "Look.")
	w.must("routine", "add", "evil", "--id", "evil", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "Bash(bash *)", "Look.")
	if r := w.pipe("v1\n", "changed", "releases"); r.status != 0 { // from before the keys were those of jobs
		t.Fatalf("%+v", r)
	}
	use := func(job, value string, status int, out string) {
		t.Helper()
		fire := w.start("fire", job)
		at := w.socket()
		r := w.forwarded(at, value, "changed", "releases")
		if r.status != status || r.out != out {
			t.Errorf("%s: %s: %+v, want %d, %q", job, strings.TrimSpace(value), r, status, out)
		}
		delete(w.env, "OLLIM_RUN")
		fire.release()
		<-fire.ended
		w.pass(time.Minute)
	}
	use("evil", "v2\n", 0, "+ v2\n")
	if r := w.pipe("v1\n", "changed", "releases"); r.status != 1 {
		t.Errorf("the owner's value: %+v", r)
	}
	use("gate", "v1\n", 1, "")
	use("gate", "v2\n", 0, "- v1\n+ v2\n")
	use("gate", "v2\n", 1, "")
	use("evil", "v2\n", 1, "")
	use("evil", "v3\n", 0, "- v2\n+ v3\n")
	if r := w.pipe("v1\n", "changed", "releases"); r.status != 1 {
		t.Errorf("the owner's value: %+v", r)
	}
}

// A question at a shell, whose records are the owner's, shows its programs no other question.
func TestForwardedOfAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: under the stone\n")
	w.must("-p", "-n", "where is my wallet?")
	first := w.last()["id"].(string)
	w.pass(time.Minute)
	w.must("-p", "-n", "--allowed-tools", "Bash(bash *)", "and now?")
	at := w.socket()
	for _, line := range []string{"run list", "events", "run show ask", "run show last", "run log " + first} {
		if r := w.forwarded(at, "", strings.Fields(line)...); strings.Contains(r.out, first) || strings.Contains(r.out, "wallet") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if r := w.forwarded(at, "", "run", "show", "last"); r.status != 0 || !strings.Contains(r.out, fmt.Sprint(w.last()["id"])) {
		t.Errorf("its own: %+v", r)
	}
}
