package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// keyboard is a terminal's input.
type keyboard struct{ *strings.Reader }

func (keyboard) IsTerminal() bool { return true }

// answers runs a command line on a terminal on which somebody writes these lines.
func (w *world) answers(lines []string, args ...string) result {
	var out, errOut screenBuffer
	status := execute(w.t.Context(), w.deps(keyboard{strings.NewReader(strings.Join(lines, "\n") + "\n")}, &out, &errOut), args)
	return result{status, out.String(), errOut.String()}
}

// newBareWorld is a world in which init has not run, with a directory of programs as its PATH.
func newBareWorld(t *testing.T, programs map[string]string) *world {
	t.Helper()
	w := newWorld(t)
	if err := os.RemoveAll(w.dir); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, text := range programs {
		if err := testkit.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env["PATH"] = bin + ":/usr/bin:/bin"
	return w
}

// homeCrontab is a crontab command that keeps its table in a file of the owner's home.
const homeCrontab = `case "$1" in -l) cat "$HOME/table" 2>/dev/null || { echo "no crontab for me" >&2; exit 1; } ;; *) cat "$@" >"$HOME/table" ;; esac`

// shows fails unless a text holds all of these, in this order.
func shows(t *testing.T, text string, want ...string) {
	t.Helper()
	rest := text
	for _, part := range want {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%q is missing, or not where it belongs:\n%s", part, text)
		}
		rest = after
	}
}

// TestInitAsks: on a terminal init asks for everything, a wrong answer again, tries the command that delivers, asks the engine and
// installs the schedule.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"crontab": homeCrontab})
	script := filepath.Join(w.home, "hello.yaml")
	if err := os.WriteFile(script, []byte("turns:\n- - text: I am here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := w.answers([]string{
		"Europe/Atlantis", "paris",
		"gpt", "claude-code", "script:" + script, "perhaps", "yes",
		"echo no such relay >&2; exit 3", "yes", `cat >"$HOME/mail"`, "no", "", `cat >"$HOME/mail"`, "yes",
		"disc", "disk", "anacron", "crontab", "no",
	}, "init")
	if r.status != 0 {
		t.Fatalf("%+v", r)
	}
	shows(t, r.errOut, "This sets up the engine", "Ctrl-C keeps what was done", "Timezone [UTC]: ", "Europe/Atlantis", "Timezone [UTC]: ",
		"claude-code", "not found", "native", "Engine [native]: ", `unknown engine "gpt"`, "Engine [native]: ", "the claude command was not found", "Engine [native]: ",
		"created config.yaml", "test question", "write yes or no", "test question", "Send messages by [none]: ", "no such relay", "Try another way [yes]: ",
		"Send messages by [none]: ", "Did it arrive [yes]: ", "did not arrive", "Try another way [yes]: ", "Send messages by [none]: ", "Did it arrive [yes]: ",
		"Routine [disk]: ", `"disc": write disk, `, "Routine [disk]: ", "Scheduler: ", `"anacron": write crontab, systemd or none`, "Scheduler: ",
		"crontab:\n  * * * * * ", "Fire disk now", "fires     disk, ", "costs     nothing: a file plays the model", "messages  cat >", "schedule  in crontab",
		"ollim chat ", "ollim status ", "ollim routine edit disk ")
	if r.out != "I am here\n" || strings.Contains(r.errOut, "is left to ollim tick") { // which fires it at its hour in Paris
		t.Errorf("%+v", r)
	}
	for file, want := range map[string]string{"mail": "This is a test message of ollim init.\n", "table": " tick"} {
		if text, err := os.ReadFile(filepath.Join(w.home, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	shows(t, w.must("config", "list"), "timezone\tEurope/Paris", "engine\tscript:", "delivery.command\tsh -c cat")
	if left, _ := os.ReadDir(filepath.Join(w.dir, "state/outbox")); len(left) > 0 {
		t.Errorf("the outbox has %v", left)
	}
	before := w.read("config.yaml")
	if r := w.answers(nil, "init"); unfolded(r.errOut) != w.dir+": nothing is missing" || r.out != "" || r.status != 0 || w.read("config.yaml") != before {
		t.Errorf("it asks again: %+v", r)
	}
}

// TestInitStandardAnswers: empty lines take what is found, and each flag replaces its question. What fails is said, and the next
// step follows.
func TestInitStandardAnswers(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"claude": "exit 1", "crontab": homeCrontab})
	r := w.answers([]string{"", "", "", "perhaps", "on", "", "", ""}, "init")
	shows(t, r.errOut, "Timezone [UTC]: ", "Engine [claude-code]: ", "test question, for about a cent [yes]: ", "ollim: init: the test question: ", "[change]: ", "write again, change or on",
		"Send messages by [none]: ", "Routine [disk]: ", "Scheduler: crontab, systemd or none [crontab]: ", "fires     disk, ", "engine    claude-code, but its test question failed: ", "messages  wait for your next ollim chat", "schedule  in crontab")
	if r.status != 0 || strings.Contains(r.errOut, "Fire disk") {
		t.Errorf("%+v", r)
	}
	shows(t, w.must("config", "list"), "timezone\tUTC", "engine\tclaude-code", "delivery.command\t\t")
	w = newBareWorld(t, map[string]string{"crontab": homeCrontab})
	r = w.answers(nil, "init", "--timezone", "UTC", "--engine", "none", "--delivery", "none", "--schedule", "none", "--routine", "none")
	if strings.Contains(r.errOut, "]: ") || r.status != 0 {
		t.Errorf("%+v", r)
	}
	shows(t, r.errOut, "created ", "fires     nothing yet: ", "engine    none: ollim config set engine native", "schedule  not installed")
	if _, err := os.Stat(filepath.Join(w.home, "table")); err == nil {
		t.Error("the crontab was touched")
	}
}

// TestInitEnds: an input that ends with a wrong answer, or without one, makes nothing.
func TestInitEnds(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, nil)
	for _, lines := range [][]string{{"Europe/Atlantis"}, {"Europe/Paris"}} {
		if r := w.answers(lines, "init"); r.status != int(statusUsage) || !strings.Contains(r.errOut, "the input has ended") || w.read("config.yaml") != "" {
			t.Errorf("%q: %+v", lines, r)
		}
	}
}

// TestInitFlags: without a terminal nothing is asked, and the flags do the same.
func TestInitFlags(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{"crontab": homeCrontab})
	w.write("hello.yaml", "turns:\n- - text: I am here\n")
	r := w.run("init", "--engine", "script:hello.yaml", "--test-engine", "--delivery", `cat >"$HOME/mail"`, "--test-delivery", "--schedule", "crontab")
	if r.status != 0 || r.out != "I am here\n" || r.errOut != "" {
		t.Errorf("%+v", r)
	}
	for _, file := range []string{"mail", "table"} {
		if text, err := os.ReadFile(filepath.Join(w.home, file)); err != nil || len(text) == 0 {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	for want, args := range map[string][]string{
		"--schedule: \"anacron\"": {"--schedule", "anacron"}, "--delivery: file: write an absolute path": {"--delivery", "file:x"},
		"--routine: \"disc\"": {"--routine", "disc"}, "--fire needs --routine": {"--fire"}, "are for --engine native": {"--engine", "none", "--model", "x"},
		"--key-env and --key-stdin: only one of them can be given": {"--key-stdin", "--key-env", "K"},
	} {
		w := newBareWorld(t, nil)
		if r := w.run(append([]string{"init"}, args...)...); r.status != int(statusUsage) || !strings.Contains(r.errOut, want) || w.read("config.yaml") != "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for want, args := range map[string][]string{
		"--last and --since: only one of them can be given\n":           {"backtest", "j", "--last", "3", "--since", "9d"},
		"--last and --run and --since: only one of them can be given\n": {"backtest", "j", "--last", "3", "--since", "9d", "--run", "x"},
		"--answer and --requests: only one of them can be given\n":      {"run", "show", "x", "--requests", "--answer", "1"},
	} {
		if r := w.run(args...); r.status != int(statusUsage) || !strings.Contains(r.errOut, ": "+want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for want, args := range map[string][]string{
		"no way to send messages is configured": {"--test-delivery"}, "the test message: exit status 3": {"--delivery", "exit 3", "--test-delivery"},
		"the engine none needs no key": {"--key-env", "HOME"},
	} {
		if r := newBareWorld(t, nil).run(append([]string{"init"}, args...)...); r.status == 0 || !strings.Contains(r.errOut, want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := newBareWorld(t, nil).run("init", "--engine", "script:none.yaml", "--test-engine"); r.status != int(statusUnavailable) || !strings.Contains(r.errOut, "the test question: ") {
		t.Errorf("%+v", r)
	}
}

// withdrawn is a terminal's input: somebody writes its first line, then a signal comes, and nothing is written any more.
type withdrawn struct {
	first  io.Reader
	signal func()
	ended  <-chan struct{}
}

func (withdrawn) IsTerminal() bool { return true }

func (w withdrawn) Read(p []byte) (int, error) {
	if n, err := w.first.Read(p); err == nil {
		return n, nil
	}
	w.signal()
	<-w.ended
	return 0, io.EOF
}

// TestInitEndsAtASignal: a signal ends init while it waits for an answer, and nothing has been written.
func TestInitEndsAtASignal(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, nil)
	ended := make(chan struct{})
	defer close(ended)
	ctx, cancel := context.WithCancelCause(t.Context())
	var out, errOut screenBuffer
	in := withdrawn{strings.NewReader("Europe/Paris\n"), func() { cancel(signalled(syscall.SIGINT)) }, ended}
	if status := execute(ctx, w.deps(in, &out, &errOut), []string{"init"}); status != 128+int(syscall.SIGINT) && status != int(statusInterrupted) {
		t.Errorf("status %d, %s", status, errOut.String())
	}
	if _, err := os.Stat(w.dir); !os.IsNotExist(err) {
		t.Errorf("the data directory: %v", err)
	}
}

// TestInitDeliveryProgram: a way to send messages whose program does not exist is refused, without a test message too.
func TestInitDeliveryProgram(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, nil)
	r := w.run("init", "--yes", "--engine", "none", "--delivery", "nosuchmail -s ollim me")
	if r.status != int(statusConfig) || !strings.Contains(r.errOut, "nosuchmail: ") || strings.TrimSpace(w.must("config", "get", "delivery.command")) != "" {
		t.Errorf("%+v", r)
	}
}
