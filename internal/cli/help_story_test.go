package cli

import (
	"regexp"
	"strings"
	"testing"
)

// inRun makes a run of a job appear to be in progress, and commands be its agent's, until the function that it returns is called.
func (w *world) inRun() (leave func()) {
	w.t.Helper()
	id := w.last()["id"].(string)
	record := regexp.MustCompile(`(?m)^\s*"(finished|outcome)":.*\n`).ReplaceAllString(w.read(runFile(id, "run.json")), "")
	w.write(runFile(id, "run.json"), record)
	w.env["OLLIM_RUN"] = id
	return func() { delete(w.env, "OLLIM_RUN") }
}

// What `ollim help` lists inside a run is not refused there.
func TestHelpInsideRunIsTrue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n")
	w.must("routine", "add", "talk", "--cron", "0 9 * * *", "Look.")
	w.must("fire", "talk")
	defer w.inRun()()
	listed := regexp.MustCompile(`(?m)^ollim ([a-z-]+(?: [a-z-]+)?)`).FindAllStringSubmatch(w.must("help"), -1)
	if len(listed) < 20 {
		t.Fatalf("%d commands: %q", len(listed), listed)
	}
	args := map[string][]string{
		"reminder add": {"--in", "45m", "look"}, "remind": {"45m", "look"}, "ping": {"hello"}, "names": {"--user", "Ann"}, "changed": {"k"},
		"task add": {"buy milk"}, "run log": {"last"}, "run show": {"last"}, "session id": {"main"},
	}
	for _, match := range listed {
		words := strings.Fields(match[1])
		if r := w.run(append(words, args[match[1]]...)...); r.status == int(statusRefused) || strings.Contains(r.errOut, "not allowed") {
			t.Errorf("%s: exit status %d, %s", match[1], r.status, r.errOut)
		}
	}
}

// Inside a run `ollim help`, which every run may call, lists what that run may use and nothing else.
func TestHelpInsideRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: one\n")
	w.must("routine", "add", "plain", "--cron", "0 9 * * *", "--background", "Look.")
	w.must("routine", "add", "wide", "--cron", "0 9 * * *", "--background", "--isolated", "--allow-ping=false",
		"--allowed-tools", "Bash(ollim run list *)", "Look.")
	w.must("routine", "add", "talk", "--cron", "0 9 * * *", "Look.")
	outside := w.must("help")
	for job, want := range map[string]struct{ has, lacks []string }{
		"plain": {
			[]string{"ollim tasks list", "ollim tasks add", "ollim help", "add_reminder", "ping_user"},
			[]string{"ollim task ", "ollim fire", "ollim run", "ollim reminder", "ollim routine", "ollim chat", "compact_session", "ollim init"},
		},
		"wide": {
			[]string{"ollim tasks list", "ollim run list"},
			[]string{"ollim run log", "ping_user", "ollim updates", "ollim config"},
		},
		"talk": {
			[]string{"ollim ping", "ollim reminder add", "ollim task list"},
			[]string{"ollim update add", "ollim reminder follow-up", "ollim session compact", "ollim completion", "ollim fire", "ollim approve", "ollim config", "ollim routine add", "ollim update pop", "ollim update clear", "ollim stop"},
		},
	} {
		w.must("fire", job)
		leave := w.inRun()
		got := w.must("help")
		leave()
		for _, text := range want.has {
			if !strings.Contains(got, text) {
				t.Errorf("%s: no %q in\n%s", job, text, got)
			}
		}
		for _, text := range want.lacks {
			if strings.Contains(got, text) {
				t.Errorf("%s: %q in\n%s", job, text, got)
			}
		}
		w.pass(1e9)
	}
	w.env["OLLIM_RUN"] = "20260101T000000.000Z-000000"
	if got := w.must("help"); got != outside {
		t.Errorf("in a run that is not there:\n%s", got)
	}
}

// TestHelpOfEachCommand: every command that `ollim help all` lists has a page of its own, with its flags, also while the settings cannot
// be read.
func TestHelpOfEachCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.replace("config.yaml", "timezone: [\n")
	listed := 0
	for line := range strings.Lines(w.must("help", "all")) {
		usage, isCommand := strings.CutPrefix(line, "ollim ")
		if !isCommand {
			continue
		}
		listed++
		usage, _, _ = strings.Cut(strings.TrimSpace(usage), "  ")
		words := strings.Fields(regexp.MustCompile(` [A-Z[(].*| [a-z]*\|.*`).ReplaceAllString(usage, ""))
		for _, args := range [][]string{append([]string{"help"}, words...), append(words, "--help")} {
			if r := w.run(args...); r.status != 0 || r.errOut != "" || !strings.Contains("\n"+r.out, "\nUsage:") {
				t.Errorf("ollim %s: %+v", strings.Join(args, " "), r)
			}
		}
	}
	if listed < 50 {
		t.Errorf("%d commands are listed", listed)
	}
}

// The description of a command is broken into lines, and the examples in cobra's texts stay as they are.
func TestHelpIsBrokenIntoLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	description, _, _ := strings.Cut(w.must("chat", "--help"), "\n\nUsage:")
	for line := range strings.Lines(description) {
		if len(line) > 80+1 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
	if bash := w.must("completion", "bash", "--help"); !strings.Contains(bash, "\n\tsource <(ollim completion bash)\n") {
		t.Error(bash)
	}
}

// A word of another program leads to the command that does the same, and each such command exists.
func TestForeignWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for word, want := range map[string]string{"list": "run list", "lst": "run list", "logs": "run log", "log": "run log", "ps": "status", "rutine": "routine"} {
		r := w.run(word, "disk")
		if text := "ollim: unknown command \"" + word + "\" (did you mean " + want; r.status != 64 || !strings.HasPrefix(r.errOut, text) {
			t.Errorf("%s: %+v, want %s", word, r, text)
		}
	}
	root := newRoot(w.deps(strings.NewReader(""), nil, nil))
	for word, commands := range foreignWords() {
		if cmd, _, err := root.Find([]string{word}); err == nil && cmd != root {
			t.Errorf("%s is a command", word)
		}
		for _, command := range commands {
			cmd, rest, err := root.Find(strings.Fields(command))
			if err != nil || cmd == root || cmd.Annotations[onlyVerbs] != "" || len(rest) > 1 {
				t.Errorf("%s: %s is no command: %v, %v", word, command, rest, err)
			}
		}
	}
}

// The first help screen lists what a beginner needs.
func TestFirstHelpScreen(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(newWorld(t).must("help"), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var verbs []string
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; !strings.HasPrefix(line, "   ") {
			verbs = append(verbs, name)
		}
	}
	if got, want := strings.Join(verbs, " "), "ask backtest chat check config distil doctor fire help init remind routine run schedule status"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
