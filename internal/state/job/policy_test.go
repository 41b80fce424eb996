package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
)

// withTools is a job file of a kind with one tool pattern on line 6, after a good one, and dirs on line 7.
func withTools(t *testing.T, kind Kind, pattern string, dirs ...string) (Job, error) {
	t.Helper()
	when := yamldoc.Pair{Key: "cron", Value: "0 9 * * *"}
	if kind == Reminder {
		when = yamldoc.Pair{Key: "run-at", Value: "2026-03-07T09:00"}
	}
	text, err := yamldoc.NewPage([]yamldoc.Pair{
		{Key: "id", Value: "a"}, when, {Key: "allowed-tools", Value: []string{"Read(./**.md)", pattern}}, {Key: "dirs", Value: dirs},
	}, "Do it.")
	if err != nil {
		t.Fatal(err)
	}
	return Parse(kind, "x.md", text)
}

// The list of behaviour 9.3, without programs that run others: those the seal holds. A job with any of these does not load, whoever wrote it.
func TestToolsRefused(t *testing.T) {
	for _, pattern := range []string{
		"", " ", "\t", "Bash", "Bash()", "Bash(*)", "Bash( * )", "Bash(**)", "Bash(:*)", "Bash(git:*)",
		"Bash(ollim help; rm -rf ~)", "Bash(ollim help && id)", "Bash(ollim help || id)", "Bash(ollim help | sh)", "Bash(ollim help & id)",
		"Bash(ollim help\nid)", "Bash(ollim help\r\nid)", "Bash(ollim help\\\nid)", "Bash(ollim help\u2028id)", "Bash(ollim help)\nBash(id)", "Read\n", "\nRead",
		"Bash(echo $(id))", "Bash(echo `id`)", "Bash(echo $HOME)", "Bash(echo ${HOME})", "Bash(echo $((1+1)))", "Bash(cat <(id))",
		"Bash(echo x > y)", "Bash(echo x >> y)", "Bash(cat < y)", "Bash(cat <<< y)", "Bash(id 2>&1)",
		"Bash(FOO=1 ls)", "Bash(PATH=. ls *)",
		"Bash(docker *)", "Bash((ls))", "Bash({ ls; })", "Bash(! ls)", "Bash(if true; then ls; fi)", "Bash(ls #)", "Bash('ls)", "Bash(l* -l)",
		"Bash(ollim approve)", "Bash(ollim approve *)", "Bash(ollim *)", "Bash(ollim a* *)", "Bash(ollim routine add *)", "Bash(ollim routines edit *)",
		"Bash(ollim routine *)", "Bash(ollim config set *)", "Bash(ollim schedule install)", "Bash(ollim init)", "Bash(ollim mcp serve)", "Bash(ollim -q approve *)",
		"Bash(ollim --data-dir /x help)", "Bash(cat state/approvals.json)", "Bash(./gates/x)", "Bash(cat ../x)", "bash(ls)",
		"Write", "Edit", "Write()", "Write(*)", "Write(**)", "Edit(**)", "Edit(./**)", "MultiEdit", "NotebookEdit(**)",
		"Write(./../x)", "Read(../x)", "Edit(./notes/../../x)", "Read(..)", "Read(~/x)", "Read(~/.ssh/**)",
		"Read(/etc/passwd)", "Read(/**)", "Write(/etc/**)", "Glob(/w/**)", "Grep(//x)", "Read(/x-y/z)", "Write(/read/z)",
		"Read(state/x.json)", "Read(./state/**)", "Write(./state/**.md)", "Read(STATE/x)", "Grep(sessions/**)", "Write(gates/x.sh)", "Edit(./gates/**)",
		"Read(config.yaml)", "Edit(./config.yaml)", "Write(tool-policy.yaml)", "Read(Config.YAML)", "Write(./s*/x)", "Edit(./*.yaml)",
		"Read(./**.md", "Read./**.md)", "Read()", "Reed", "read", "Foo(x)", "(x)", "Read (x)", "Skill(../x)", "Task(a b)", "WebFetch(https://example.org)",
		"mcp__", "mcp__x__*y", "mcp__x__y(z)", "Read(./\x1b[31m)", "Read(./\u202etxt.md)", strings.Repeat("R", 5000),
	} {
		for _, kind := range []Kind{Routine, Reminder} {
			_, err := withTools(t, kind, pattern, "/x", "rw:/y", "/read")
			want := "x.md:6: allowed-tools: item 2: "
			if strings.ContainsAny(pattern, "\x1b\u202e") { // refused with the whole file
				want = "x.md:"
			}
			if got := faults(err); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
				t.Errorf("%s: %q: %s", kind, pattern, got)
			}
		}
	}
}

func TestToolsAllowed(t *testing.T) {
	for _, pattern := range []string{
		"Read", "Glob", "Grep", "WebSearch", "WebFetch", "WebFetch(domain:example.org)", "Skill(weekly *)", "Task", "mcp__github__*", "TodoWrite",
		"Bash(ollim help)", "Bash(ollim tasks *)", "Bash(ollim updates list *)", "Bash(git log *)", "Bash(date)", "Bash(python3 ./tools/report.py *)",
		"Bash(grep 'a;b' notes.md)", "Write(./notes/**.md)", "Edit(./**.md)", "Read(notes/x)", "Read(/x/**)", "Read(/x/y/z.md)", "Write(/y/**)", "Edit(/y/notes/*.md)", "Grep(/y/**)",
	} {
		j, err := withTools(t, Routine, pattern, "/x/", "rw:/y/z/..", "/read")
		if err != nil || !slices.Equal(j.AllowedTools, []string{"Read(./**.md)", pattern}) {
			t.Errorf("%q: %q, %v", pattern, j.AllowedTools, err)
		}
	}
}

// An item of a list is found on its own line, in either spelling of the key, and whatever stands around it.
func TestLineOfATool(t *testing.T) {
	for text, want := range map[string]string{
		page("id: a", "cron: 0 9 * * *", "allowed-tools: [Read, Bash]"):                                       `x.md:4: allowed-tools: item 2: tool pattern "Bash": `,
		page("id: a", "cron: 0 9 * * *", "allowed_tools:", "  - Read", "  # mine", "  - Write"):               `x.md:7: allowed-tools: item 2: tool pattern "Write": `,
		page("allowed-tools:", "  - Read(/x/**)", "  - Read(/z/**)", "id: a", "cron: '@daily'", "dirs: [/x]"): `x.md:4: allowed-tools: item 2: tool pattern "Read(/z/**)": `,
		page("corn: x", "id: a", "cron: '@daily'", "allowed-tools:", "  - Foo"):                               "x.md:2: corn: unknown key (did you mean cron?)\nx.md:6: allowed-tools: item 1: ",
		page("id: a", "cron: '@daily'", "allowed-tools:", "  - Read(/x/y)", "dirs:", "  - x"):                 `x.md:7: dirs: item 1: "x": want an absolute path`,
		page("id: a", "cron: '@daily'", "skills:", "  - a", "  - b c"):                                        `x.md:6: skills: item 2: `,
	} {
		_, err := Parse(Routine, "x.md", []byte(text))
		if got := faults(err); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != strings.Count(want, "\n") {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestDirs(t *testing.T) {
	const full = ": want an absolute path or one that begins with ~/; rw: in front allows writing"
	for entry, want := range map[string]string{
		"/srv/data": "", "/srv/data/": "", "~/src": "", "~/": "", "rw:~/src/foo": "", "rw:/srv/x": "", "rw:~/": "", "/": "", "~/My Documents": "", "/été/日本": "",
		"/a/../b": "",
		"":        full, "rw:": full, "x": full, "./x": full, "../x": full, "~": full, "~root/x": full, "rw:x": full, "rw:rw:/x": full, "RW:/x": full, " /x": full,
		"ro:/x": full, "$HOME/x": full,
		"rw:/": "writing needs a scope", "rw:~/..": "writing needs a scope", "rw:/x/..": "writing needs a scope",
		"/a*b": "leaves", "/x?": "wildcards", "/x[1]": "wildcards", "/x{a,b}": "wildcards", "/a(b)": "wildcards", `/a\b`: "wildcards", "/a\nb": "no newline",
	} {
		_, err := withTools(t, Routine, "Read", entry)
		got := faults(err)
		if want == "" && got == "" {
			continue
		}
		if want == "" || !strings.HasPrefix(got, "x.md:8: dirs: item 1: ") || !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", entry, got, want)
		}
	}
}

// Every entry that a file may hold gives patterns when the job fires.
func TestRoots(t *testing.T) {
	j, err := withTools(t, Routine, "Read", "~/", "rw:~/", "~/a/../b/", "rw:/srv/x/", "/y")
	if err != nil {
		t.Fatal(err)
	}
	got := j.Roots("/home/me")
	want := []policy.Root{
		{Dir: "/home/me"}, {Dir: "/home/me", Writable: true}, {Dir: "/home/me/b"}, {Dir: "/srv/x", Writable: true}, {Dir: "/y"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, root := range got {
		patterns, err := policy.OfDir(root)
		if err != nil || len(patterns) != map[bool]int{false: 3, true: 5}[root.Writable] {
			t.Errorf("%v: %q, %v", root, patterns, err)
		}
	}
}
