package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runner"
)

// socket serves the newest run, as if it were in progress and sealed, and returns the run's socket. Its processes offer the
// engine the tools of these patterns.
func (w *world) socket(servers ...string) string {
	w.t.Helper()
	w.t.Cleanup(w.inRun())
	d := w.deps(nil, io.Discard, io.Discard)
	delete(w.env, "OLLIM_RUN") // the process that executes a run is in none
	d.Execute = d.executeForwarded
	h, err := d.Home()
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := h.Runner(false).Serve(runner.Service{Run: w.last()["id"].(string), Servers: servers})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Close)
	return s.Path
}

// forwarded runs a command line as a process of a sealed run does.
func (w *world) forwarded(socket, input string, args ...string) result {
	w.t.Helper()
	out, err := os.CreateTemp(w.t.TempDir(), "out")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	var errOut bytes.Buffer
	status := forwardTo(w.t.Context(), socket, args, strings.NewReader(input), out, &errOut)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		w.t.Fatal(err)
	}
	return result{status, string(text), errOut.String()}
}

// repeatable is random numbers that are the same in every world.
type repeatable struct{ n *byte }

func (c repeatable) Read(p []byte) (int, error) {
	for i := range p {
		*c.n++
		p[i] = *c.n
	}
	return len(p), nil
}

// newTwins makes two worlds with a run of the main conversation, which differ in their directories alone.
func newTwins(t *testing.T) (one, other *world) {
	t.Helper()
	one, other = newWorld(t), newWorld(t)
	one.script("turns:\n  - - text: one\n")
	one.write("routines/talk.md", "---\nid: talk\ncron: 0 9 * * *\n---\nLook.\n")
	one.write("webhooks/ci.md", "---\nid: ci\nsignature: github\nfields:\n  properties:\n    ref: {type: string}\n---\nLook.\n")
	one.write("reminders/milk.md", "---\nid: milk\nrun-at: 2026-03-03T10:00:00Z\n---\nMilk?\n")
	one.write("skills/tea/SKILL.md", "---\nname: tea\ndescription: How to make tea.\n---\nBoil water.\n")
	one.write("notes/part.txt", "attached\n")
	one.must("config", "set", "delivery.command", "cat")
	one.must("task", "add", "buy milk")
	one.must("update", "add", "news")
	one.must("fire", "talk")
	if err := errors.Join(os.RemoveAll(other.dir), os.CopyFS(other.dir, os.DirFS(one.dir))); err != nil {
		t.Fatal(err)
	}
	other.now = one.now
	one.random, other.random = repeatable{new(byte)}, repeatable{new(byte)}
	return one, other
}

// linesOfAgents is command lines of each command that an agent may use, by the command: with -, standard input is text.
func linesOfAgents() map[string][]string {
	return map[string][]string{
		"budget": {"", "--json"}, "changed": {"key", "key", "--bad x"}, "check": {"", "nothing.md", "routines/talk.md"}, "cost": {"", "--json"}, "events": {""},
		"fork exit": {""}, "fork save": {""}, "fork start": {"a topic"}, "fork status": {""}, "help": {"", "ping", "5 routine", "search session", "nonsense"},
		"model list": {"", "--json"}, "names": {"--user Ann", ""}, "ping": {"hello", "-", "--file notes/part.txt", "--embed {}", "--ask which? --choice a"},
		"remind": {"45m look"}, "reminder add": {"--in 45m look", "--in 45m -", "--in never x"}, "reminder cancel": {"milk", "nothing"}, "reminder follow-up": {"30m"},
		"reminder list": {"", "--json"}, "reminder show": {"milk"}, "routine list": {""}, "routine show": {"talk", "x y"}, "run list": {"", "--json", "talk"},
		"run log": {"last", "--json last"}, "run show": {"last", "nothing"}, "session compact": {"main short", "x y"}, "session history": {""}, "session id": {"main", "x"},
		"session list": {"", "--here"}, "skill list": {""}, "skill show": {"tea", "x"}, "status": {"", "--json"}, "task add": {"buy tea", "-"}, "task done": {"1", "x"},
		"task edit": {"1 buy a cow"}, "task list": {"", "--json"}, "task rm": {"1"}, "update add": {"more", "-"}, "update list": {"", "--json"}, "update peek": {""},
		"version": {"", "--json"}, "webhook list": {""}, "webhook show": {"ci"}, "": {"", "--help", "--version", "nonsense", "-p hello", "-q task list", "task"},
	}
}

// Every command that an agent may use has the same streams and status over the socket as by files, and leaves the same behind.
func TestForwardedCommandsAreTheSame(t *testing.T) {
	t.Parallel()
	lines := linesOfAgents()
	for _, access := range []string{"all", "own"} {
		for _, verb := range commandsOfAgents()[access] {
			if len(lines[verb]) == 0 {
				t.Errorf("%s: no command line", verb)
			}
		}
	}
	files, socket := newTwins(t)
	at := socket.socket("")
	defer files.inRun()()
	plain := func(text string) string {
		return strings.NewReplacer(files.dir, "DATA", socket.dir, "DATA").Replace(text)
	}
	verbs := make([]string, 0, len(lines))
	for verb := range lines {
		verbs = append(verbs, verb)
	}
	slices.Sort(verbs)
	for _, verb := range verbs {
		for _, line := range lines[verb] {
			args := append(strings.Fields(verb), strings.Fields(line)...)
			for i, arg := range args {
				if strings.HasPrefix(arg, "notes/") || strings.HasPrefix(arg, "routines/") {
					args[i] = "PLACE/" + arg
				}
			}
			in := func(w *world) []string {
				words := slices.Clone(args)
				for i := range words {
					words[i] = strings.Replace(words[i], "PLACE", w.dir, 1)
				}
				return words
			}
			want, got := files.pipe("some\ntext\n", in(files)...), socket.forwarded(at, "some\ntext\n", in(socket)...)
			want.out, want.errOut, got.out, got.errOut = plain(want.out), plain(want.errOut), plain(got.out), plain(got.errOut)
			if verb == "" && want.status == int(statusUsage) && got.status == int(statusRefused) || line == "-p hello" && got.status == int(statusRefused) {
				continue // what no agent may run is refused before it is parsed
			}
			if got != want {
				t.Errorf("ollim %q:\nby files   %+v\nforwarded  %+v", args, want, got)
			}
			files.pass(time.Second)
			socket.pass(time.Second)
		}
	}
	for _, name := range []string{"tasks/tasks.md", "state/pending_updates.json", "state/runs/" + files.last()["id"].(string) + "/events.jsonl"} {
		if a, b := plain(files.read(name)), plain(socket.read(name)); a != b {
			t.Errorf("%s:\nby files   %s\nforwarded  %s", name, a, b)
		}
	}
}
