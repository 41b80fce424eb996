package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/app"
)

// complete returns what a shell is offered for the last word of a command line, without descriptions. It fails the test if an error
// is among it.
func (w *world) complete(words ...string) []string {
	w.t.Helper()
	r := w.run(append([]string{"__complete"}, words...)...)
	if r.status != 0 || strings.Contains(r.errOut, "ollim:") {
		w.t.Errorf("complete %q: exit status %d, %s", words, r.status, r.errOut)
	}
	var list []string
	for line := range strings.Lines(r.out) {
		if word, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); !strings.HasPrefix(word, ":") {
			list = append(list, word)
		}
	}
	return list
}

func TestCompletionOfArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("script.yaml", "turns:\n  - - text: hello\n")
	w.write("routines/disk.md", "---\nid: d1\ncron: \"0 9 * * *\"\nbackground: true\n---\nLook.\n")
	w.write("reminders/tea.md", "---\nid: tea\nrun-at: 2099-01-01T09:00:00Z\n---\nTea.\n")
	w.write("webhooks/ci.md", "not even a header\n")
	w.write("skills/standup/SKILL.md", "---\ndescription: d\n---\nBody.\n")
	w.write("tasks/todo.txt", "Call\nx Done\n")
	w.must("fire", "disk")
	w.must("ask", "why?")
	run := strings.TrimSpace(w.must("run", "show", "disk"))
	run = strings.Split(run[strings.Index(run, `"id": "`)+7:], `"`)[0]
	id, _, _ := strings.Cut(w.must("session", "list", "--all"), "\t")
	for _, c := range []struct {
		line string // its last word is to be completed
		want string
	}{
		{"fire ", "disk tea ci"},
		{"fire disk ", "tea ci"},
		{"fire di", "disk"},
		{"routine show ", "disk"},
		{"routines rm d", "disk"},
		{"routine delete di", "disk"},
		{"reminder cancel ", "tea"},
		{"webhook call ", "ci"},
		{"webhook call ci ", ""},
		{"run show " + run[:8], "2"},
		{"run log l", "last"},
		{"run log last ", ""},
		{"session show " + id[:3], id},
		{"session compact m", "main"},
		{"-c -r " + id[:3], id},
		{"config get spend.per-d", "spend.per-day"},
		{"config set spend.per-day ", ""},
		{"config set engine ", "claude-code native acp: script:"},
		{"config set chat.permissions a", "acceptEdits"},
		{"skill render ", "standup"},
		{"approve skill:", "skill:standup"},
		{"task done ", "1"},
		{"ask --model opu", "opus"},
		{"-p --engine na", "native"},
		{"ask --output-format s", "stream-json"},
		{"-p --output-f", "--output-format"},
		{"--vers", "--version"},
		{"cost --by ", "job day model"},
		{"schedule print c", "crontab"},
		{"help rout", "routine"},
		{"help routine en", "enable"},
		{"stop ", ""},
		{"answer ", ""},
		{"--data-dir /nowhere/at/all fire ", ""},
		{"--data-dir /nowhere/at/all config get time", "timezone"},
	} {
		got := strings.Join(w.complete(strings.Split(c.line, " ")...), " ")
		if c.want == "2" { // the runs of disk and of ask
			if n := len(strings.Fields(got)); n != 2 {
				t.Errorf("%q: %q", c.line, got)
			}
		} else if got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	w.write("config.yaml", "engine: [\n")
	if got := w.complete("fire", "disk", "t"); !slices.Equal(got, []string{"tea"}) {
		t.Errorf("with invalid settings: %q", got)
	}
	w.complete("ask", "--model", "")
}

// Every entry of the tables is for a command or a flag that there is.
func TestCompletersHaveCommands(t *testing.T) {
	t.Parallel()
	root := newRoot(&deps{App: &app.App{}})
	for words := range completers() {
		if cmd, _, err := root.Find(strings.Fields(words)); err != nil || verbOf(cmd) != words {
			t.Errorf("no command %q", words)
		}
	}
	flags := flagCompleters()
	for _, noun := range root.Commands() {
		for _, cmd := range append(noun.Commands(), noun, root) {
			for name := range flags {
				if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
					delete(flags, name)
				}
			}
		}
	}
	for name := range flags {
		t.Errorf("no command has --%s", name)
	}
}

// A verb has the names that people try. For the policy of a run they are one command.
func TestAliases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("task", "add", "Call")
	w.must("task", "add", "Write")
	w.must("task", "remove", "1")
	w.must("tasks", "delete", "2")
	if out := w.must("task", "ls"); out != "" {
		t.Errorf("left: %q", out)
	}
	access := commandAccess()
	for _, words := range []string{"session rm", "session delete", "session remove"} {
		if _, got := access(strings.Fields(words + " main")); got != 0 {
			t.Errorf("%s: an agent may use it: %v", words, got)
		}
	}
}

func TestVersionAndNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if a, b := w.must("--version"), w.must("version"); a != b || !strings.HasPrefix(a, "ollim ") {
		t.Errorf("--version prints %q, version %q", a, b)
	}
	if out := w.must("version", "--json"); !strings.HasPrefix(out, `{"version":"`) {
		t.Errorf("version --json: %q", out)
	}
	w.must("names", "--user", "Ada")
	if out := w.must("names", "--json"); out != `{"user":"Ada","bot":""}`+"\n" {
		t.Errorf("names --json: %q", out)
	}
}
