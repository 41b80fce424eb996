package cli

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/screen"
	"github.com/ollim/ollim/internal/ui"
)

// screenBuffer is a terminal. It scrolls.
type screenBuffer struct {
	columns int // 0: not known
	rows    int // 0: not known; otherwise output is paged
	mu      sync.Mutex
	bytes.Buffer
}

func (s *screenBuffer) Size() (columns, rows int) { return s.columns, s.rows }

func (*screenBuffer) IsTerminal() bool { return true }

func (s *screenBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Buffer.Write(p)
}

// onTerminal runs a command line whose streams are a terminal.
func (w *world) onTerminal(args ...string) result { return w.onColumns(0, args...) }

// onColumns is onTerminal for a terminal of so many columns.
func (w *world) onColumns(columns int, args ...string) result {
	out, errOut := screenBuffer{columns: columns}, screenBuffer{columns: columns}
	status := execute(w.t.Context(), w.deps(strings.NewReader(""), &out, &errOut), args)
	return result{status, out.String(), errOut.String()}
}

// Every list has a header line on a terminal, with a name for each column of its records; a pipe gets the records alone, and as many
// columns. An empty list is empty.
func TestListsHaveHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, list := range []string{"run list", "task list", "update list", "update peek", "update list --all", "reminder list", "approve", "cost", "session list", "session history"} {
		if r := w.onTerminal(strings.Fields(list)...); r.status != 0 || r.out != "" {
			t.Errorf("%s: an empty list is %d, %q", list, r.status, r.out)
		}
	}
	w.write("script.yaml", "turns:\n  - - tool: Read\n      input: {file_path: a.md}\n    - cost: 0.5\n    - text: hello\n")
	w.write("routines/disk.md", "---\nid: d1\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\ndescription: Disk\nallowed-tools: [\"Bash(df -h)\"]\n---\nLook.\n")
	w.write("webhooks/ci.md", "---\nid: w1\ndescription: CI\nfields: {properties: {branch: {}}}\nsecret: ci\n---\nLook.\n")
	w.write("skills/standup/SKILL.md", "---\ndescription: A note\n---\nBody.\n")
	w.must("task", "add", "(A) Call due:2026-03-09")
	w.must("update", "add", "news")
	w.must("remind", "45m", "tea")
	if r := w.run("approve"); !strings.Contains(r.out, "disk") {
		t.Fatalf("nothing waits: %v", r)
	}
	w.run("fire", "daily-market", "disk")
	w.must("chat", "hello")
	w.must("ask", "hello")
	for _, list := range []string{
		"run list", "routine list", "reminder list", "webhook list", "skill list", "task list --all", "update list --all", "approve",
		"model list", "config list", "cost", "cost --by day", "session list", "session list --all", "session history",
		"session search hello", "schedule list", "schedule list --cost", "schedule audit",
	} {
		args := strings.Fields(list)
		shown, piped := w.onColumns(500, args...), w.run(args...)
		lines, records := strings.Split(strings.TrimSpace(shown.out), "\n"), strings.Split(strings.TrimSuffix(piped.out, "\n"), "\n")
		header := strings.Fields(lines[0])
		if columns := strings.Count(records[0], "\t") + 1; piped.out != "" && len(header) != columns {
			t.Errorf("%s: %d names for %d columns: %s", list, len(header), columns, lines[0])
		}
		if piped.out != "" && (len(lines) != len(records)+1 || strings.ToUpper(lines[0]) != lines[0]) {
			t.Errorf("%s: %d lines for %d records:\n%s", list, len(lines), len(records), shown.out)
		}
		if piped.out == "" && list != "schedule audit" {
			t.Errorf("%s: the list is empty", list)
		}
		if strings.Contains(shown.out, "\t") || strings.Contains(piped.out, "ago") {
			t.Errorf("%s: tabs or relative times:\n%s\n%s", list, shown.out, piped.out)
		}
	}
}

func TestRelativeTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		since time.Duration
		want  string
	}{
		{0, "just now"},
		{59 * time.Second, "just now"},
		{time.Minute, "1 minute ago"},
		{3 * time.Hour, "3 hours ago"},
		{7 * 24 * time.Hour, "7 days ago"},
		{7*24*time.Hour + time.Second, "exact"},
		{-30 * time.Second, "just now"},
		{-90 * time.Second, "in 1 minute"},
		{-49 * time.Hour, "in 2 days"},
		{-8 * 24 * time.Hour, "exact"},
	} {
		if got := relative(now, now.Add(-c.since), "exact"); got != c.want {
			t.Errorf("%v: %q, want %q", c.since, got, c.want)
		}
	}
	if got := relative(now, time.Time{}, ""); got != "" {
		t.Errorf("an unknown time: %q", got)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		env        map[string]string
		terminal   bool
	}{
		{name: "pipe", want: "a\t1999-12-31 00:00:00\tfailed\tlast\n日本\t2026-03-02 09:00:00\tok\t\n"},
		{name: "forced", env: map[string]string{"CLICOLOR_FORCE": "1"},
			want: "a\t1999-12-31 00:00:00\t\x1b[31mfailed\x1b[0m\tlast\n日本\t2026-03-02 09:00:00\tok\t\n"},
		{name: "terminal", terminal: true, env: map[string]string{"TERM": "xterm"},
			want: "ID    WHEN                 STATE   END\na     1999-12-31 00:00:00  \x1b[31mfailed\x1b[0m  last\n日本  1 hour ago           ok\n"},
		{name: "no colour", terminal: true, env: map[string]string{"TERM": "xterm", "NO_COLOR": "1", "CLICOLOR_FORCE": "1"},
			want: "ID    WHEN                 STATE   END\na     1999-12-31 00:00:00  failed  last\n日本  1 hour ago           ok\n"},
		{name: "dumb", terminal: true, env: map[string]string{"TERM": "dumb"},
			want: "ID    WHEN                 STATE   END\na     1999-12-31 00:00:00  failed  last\n日本  1 hour ago           ok\n"},
		{name: "CLICOLOR=0", terminal: true, env: map[string]string{"TERM": "xterm", "CLICOLOR": "0"},
			want: "ID    WHEN                 STATE   END\na     1999-12-31 00:00:00  failed  last\n日本  1 hour ago           ok\n"},
	} {
		var out bytes.Buffer
		d := &deps{Out: clean{&out}, Stdout: &out, App: &app.App{Machine: app.Machine{
			Now:    func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) },
			Lookup: func(name string) (string, bool) { value, ok := c.env[name]; return value, ok },
		}}}
		if c.terminal {
			d.Stdout = &screenBuffer{}
		}
		table := d.table("ID WHEN STATE END")
		table.row("a", past(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)), state("failed"), "last")
		table.row("日本", past(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)), state("ok"), "")
		table.end()
		if got := out.String(); got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", c.name, got, c.want)
		}
	}
}

// A text in a list cannot take the terminal over, with colour or without.
func TestTableIsPrintable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := &deps{Out: clean{&out}, Stdout: &out, App: &app.App{Machine: app.Machine{Lookup: func(string) (string, bool) { return "1", true }}}}
	d.Lookup = func(name string) (string, bool) { return map[string]string{"CLICOLOR_FORCE": "1"}[name], true }
	d.table("").row("\x1b]0;title\a", state("\x1b[2J"))
	if got := out.String(); strings.ContainsAny(got, "\x1b\a") {
		t.Errorf("%q", got)
	}
}

// TestProgress: the status line stays below the output, also below a line that has not ended, and leaves nothing behind.
func TestProgress(t *testing.T) {
	t.Parallel()
	s, tty := screen.New(t, screen.Size{Columns: 40, Rows: 8})
	var seconds atomic.Int64
	d := &deps{Stdout: tty, Stderr: tty, App: &app.App{Machine: app.Machine{
		Now:    func() time.Time { return time.Unix(seconds.Load(), 0) },
		Lookup: func(string) (string, bool) { return "xterm", true },
	}}}
	step := func(want string, do func()) {
		t.Helper()
		do()
		s.Wait("the screen is "+strconv.Quote(want), func() bool { return strings.Join(s.Lines(), "|") == want })
	}
	print := func(text string) func() { return func() { _, _ = sink{d}.Write([]byte(text)) } }
	stop := d.watch("disk")
	seconds.Store(65)
	step("disk  1m5s  Bash", func() { d.follow(runlog.Event{Type: runlog.ToolUse, Tool: "Bash"}) })
	step("disk  1m5s", func() { d.follow(runlog.Event{Type: runlog.ToolResult, Tool: "Bash"}) })
	step("disk  1m5s  4.2k tokens  $0.25", func() {
		d.follow(runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{In: 4000, Out: 200}})
	})
	step("Half a line|disk  1m5s  4.2k tokens  $0.25", print("Half a line"))
	step("Half a line ends.|disk  1m5s  4.2k tokens  $0.25", print(" ends.\n"))
	step("Half a line ends.|ollim: warning: late|disk  1m5s  4.2k tokens  $0.25", func() { d.warn("late") })
	step("Half a line ends.|ollim: warning: late|w|disk  1m5s  4.2k tokens  $0.25", print("w"))
	step("Half a line ends.|ollim: warning: late|w", stop)
	step("Half a line ends.|ollim: warning: late|whole", print("hole\n"))
	step("Half a line ends.|ollim: warning: late|whole", func() { d.follow(runlog.Event{Type: runlog.ToolUse, Tool: "Bash"}) })
	before := s.Raw()
	for _, silent := range []deps{{quiet: true}, {logFormat: "json"}} {
		silent.App, silent.Stdout, silent.Stderr = d.App, tty, tty
		silent.watch("disk")()
		silent.follow(runlog.Event{Type: runlog.ToolUse, Tool: "Bash"})
	}
	_, _ = io.WriteString(tty, "END")
	s.WaitFor("END")
	if got := strings.TrimPrefix(s.Raw(), before); got != "END" {
		t.Errorf("-q and --log-format json write %q", got)
	}
}

// A run on a terminal ends with one line; one that fails has the line of its error.
func TestRunEndsWithOneLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("routines/disk.md", "---\nid: d1\ncron: \"0 9 * * *\"\nbackground: true\n---\nLook.\n")
	w.write("script.yaml", "turns:\n  - - cost: 0.25\n    - text: hello\n")
	for line, want := range map[string]string{
		"fire disk": " tokens, $0.25; see: ollim run log disk", "ask hi": " tokens, $0.25, run 2026",
		"chat hi": " tokens, $0.25, run 2026",
	} {
		r := w.onTerminal(strings.Fields(line)...)
		if lines := strings.Split(strings.TrimSpace(r.errOut), "\n"); r.status != 0 || !strings.Contains(lines[len(lines)-1], want) {
			t.Errorf("%s: %v", line, r)
		}
		if r := w.run(strings.Fields(line)...); r.errOut != "" && !strings.Contains(r.errOut, "catching") {
			t.Errorf("%s in a pipe: %v", line, r)
		}
	}
	w.write("script.yaml", "turns:\n  - - error: broken\n")
	if r := w.onTerminal("fire", "disk"); r.status == 0 || strings.Count(r.errOut, "ollim: fire: disk:") != 1 {
		t.Errorf("%v", r)
	}
}

// An error, a hint and a note are broken at words, at the width of a terminal. A command that a line has no room for stands on a line
// by itself, so that it can be copied; a pipe gets each message as one line.
func TestHintsFit(t *testing.T) {
	t.Parallel()
	out := screenBuffer{columns: 40}
	d := &deps{Stdout: &out, Stderr: &out, App: &app.App{}}
	reason := errors.New("a reason that is longer than the terminal is wide")
	remedy := "a remedy that takes more than one line: ollim config set spend.per-day 100; or wait"
	d.fail("fire", "disk", hint(reason, "%s", remedy))
	d.note("what follows takes more than one line as well: `ollim help`")
	want := "ollim: fire: disk: a reason that is\n  longer than the terminal is wide\n" +
		"ollim: hint: a remedy that takes more\n  than one line:\n  ollim config set spend.per-day 100\n  or wait\n" +
		"what follows takes more than one line as\n  well: `ollim help`\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var pipe bytes.Buffer
	d.Stderr = &pipe
	d.fail("fire", "disk", hint(reason, "%s", remedy))
	if got, want := pipe.String(), "ollim: fire: disk: "+reason.Error()+"\nollim: hint: "+remedy+"\n"; got != want {
		t.Errorf("a pipe gets %q, want %q", got, want)
	}
}

// TestTextsFit: what an agent read and wrote is broken at words on a terminal, and keeps its indent; a pipe gets it as it is.
func TestTextsFit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("some words of a sentence ", 12)
	w.write("routines/disk.md", "---\nid: d1\ncron: \"0 9 * * *\"\nbackground: true\n---\nLook.\n\n  - "+long+"\n")
	w.write("script.yaml", "turns:\n  - - tool: Read\n      input: {file_path: a.md, why: "+long+"}\n    - text: |\n        "+long+"\n        second line\n")
	w.must("fire", "disk")
	for command, last := range map[string]string{"fire --dry-run disk": "\n  - " + long + "\n", "run log disk": "\n    " + strings.TrimSpace(long) + " \n    second line\n"} {
		args := strings.Fields(command)
		piped := w.must(args...)
		if !strings.Contains(piped, last) {
			t.Errorf("%s: the text is broken in a pipe:\n%s", command, piped)
		}
		for _, columns := range []int{40, 80, 120} {
			shown := w.onColumns(columns, args...).out
			if strings.Join(strings.Fields(shown), " ") != strings.Join(strings.Fields(piped), " ") {
				t.Errorf("%s, %d columns: words are broken:\n%s", command, columns, shown)
			}
			deep := 0
			for line := range strings.Lines(shown) {
				if line = strings.TrimRight(line, "\n"); ui.Width(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%s: %d columns: %q", command, columns, line)
				}
				if strings.HasPrefix(line, "    ") && strings.Contains(line, "sentence") {
					deep++
				}
			}
			if deep < len(long)/columns {
				t.Errorf("%s, %d columns: %d lines are indented:\n%s", command, columns, deep, shown)
			}
		}
	}
}
