package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/forward"
	"github.com/ollim/ollim/internal/testkit"
)

// socket serves the newest run, as if it were in progress and sealed, and returns the run's socket. Its processes offer the
// engine the tools of these patterns.
func (w *world) socket(servers ...string) string {
	w.t.Helper()
	w.t.Cleanup(w.inRun())
	d := w.deps(nil, io.Discard, io.Discard)
	delete(w.env, "OLLIM_RUN") // the process that executes a run is in none
	d.Execute = d.executeForwarded
	h := homeOf(w.t, d)
	s := h.Runner(false).Host.Serve(run.Service{Run: w.last()["id"].(string), Servers: servers, Write: []string{filepath.Join(w.dir, "tasks")}})
	if err := s.Listen(); err != nil {
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
		"budget": {"", "--json"}, "changed": {"key", "key", "--bad x"}, "check": {"", "notes/none.md", "routines/talk.md"}, "cost": {"", "--json"}, "events": {""},
		"fork exit": {""}, "fork save": {""}, "fork start": {"a topic"}, "fork status": {""}, "help": {"", "ping", "5 routine", "search session", "nonsense"},
		"model list": {"", "--json"}, "names": {"--user Ann", ""}, "ping": {"hello", "-", "--file notes/part.txt", "--embed {}", "--ask which? --choice a"},
		"remind": {"45m look"}, "reminder add": {"--in 45m look", "--in 45m -", "--in never x"}, "reminder cancel": {"milk", "nothing"}, "reminder follow-up": {"30m"},
		"reminder list": {"", "--json"}, "reminder show": {"milk"}, "routine list": {""}, "routine show": {"talk", "x y"}, "run list": {"", "--json", "talk"},
		"run log": {"last", "--json last"}, "run replay": {"last", "nothing"}, "run show": {"last", "nothing"}, "session compact": {"main short", "x y"}, "session history": {""}, "session id": {"main", "x"},
		"session list": {"", "--here"}, "skill list": {""}, "skill show": {"tea", "x"}, "status": {"", "--json"}, "task add": {"buy tea", "-"}, "task done": {"1", "x"},
		"task edit": {"1 buy a cow"}, "task list": {"", "--json"}, "task rm": {"1"}, "update add": {"more", "-"}, "update list": {"", "--json"}, "update peek": {""},
		"version": {"", "--json"}, "webhook list": {""}, "webhook show": {"ci"}, "why": {"last", "no such words"}, "": {"", "--help", "--version", "nonsense", "-p hello", "-q task list", "task"},
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
	for _, name := range []string{"tasks/todo.txt", "state/pending_updates.json", runFile(files.last()["id"].(string), "events.jsonl")} {
		if a, b := plain(files.read(name)), plain(socket.read(name)); a != b {
			t.Errorf("%s:\nby files   %s\nforwarded  %s", name, a, b)
		}
	}
}

// A process of a sealed run may have nothing executed that reaches farther than an agent does: no command of the owner's, no other
// directory, settings or engine, and no MCP server that its run has not.
func TestForwardedCommandsOfNoAgent(t *testing.T) {
	t.Parallel()
	w, other := newTwins(t)
	w.must("config", "set", "mcp-servers.mine.command", "cat")
	w.must("config", "set", "mcp-servers.theirs.command", "cat")
	at := w.socket("mcp__mine__*")
	of := func(dir string) []string {
		return []string{"--data-dir", dir, "--config", filepath.Join(dir, "config.yaml")}
	}
	lines := [][]string{
		{"task", "list", "--data-dir", other.dir}, {"task", "list", "--data-dir=" + w.dir}, {"--config", "x", "task", "list"}, {"task", "list", "--config=x"},
		{"fork", "start", "--engine", "script:x"}, {"-p", "hello"}, {"__complete", "task", ""}, {"update", "pop", "--", "cat"}, {"", "task", "list"},
		append(of(other.dir), "hook", "pre-tool"), append(of(other.dir), "mcp", "serve"), append(of(w.dir), "fire", "talk"), append(of(w.dir), of(w.dir)...),
		append(append(of(w.dir), of(other.dir)...), "mcp", "serve"), append(of(w.dir), "hook", "pre-tool", "--config", "x"),
		{"hook", "pre-tool", "x"}, {"hook", "stop", "--data-dir", other.dir}, {"mcp", "serve", "--config=x"}, {"mcp", "tools"}, {"mcp", "serve", "x"}, {"hooks", "stop"},
		{"mcp", "connect"}, {"mcp", "connect", "theirs"}, {"mcp", "connect", "theirs", "mcp__mine__*"}, {"mcp", "connect", "mine", "mcp__theirs__*"},
		{"mcp", "connect", "mine", "--data-dir", other.dir, "mcp__mine__*"}, {"-q", "approve", "talk"}, {"help", "--data-dir", other.dir},
	}
	for access, verbs := range commandsOfAgents() {
		for _, verb := range verbs {
			if strings.HasPrefix(access, "never") && !slices.Contains([]string{"hook pre-tool", "hook post-tool", "hook stop", "mcp serve"}, verb) {
				lines = append(lines, append(strings.Fields(verb), "x"), append([]string{"--quiet"}, strings.Fields(verb)...))
			}
		}
	}
	for _, line := range lines {
		if r := w.forwarded(at, "{}", line...); r.status != int(statusRefused) || r.out != "" || !strings.Contains(r.errOut, "not allowed") {
			t.Errorf("ollim %q: %+v", line, r)
		}
	}
}

// Files that the arguments of a forwarded command name are those of its caller, and are read only where the run may read.
func TestForwardedFiles(t *testing.T) {
	t.Parallel()
	w, _ := newTwins(t)
	at := w.socket()
	w.write("notes/routines/a.md", "---\nid: a\ncron: 0 9 * * *\n---\nLook.\n")
	w.write("notes/bad.yaml", "no-such-key: 1\n")
	secret := filepath.Join(w.home, "secret.md")
	if err := os.WriteFile(secret, []byte("---\nhunter2: x\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"notes/link.md": secret, "notes/state": filepath.Join(w.dir, "state"), "notes/real.md": filepath.Join(w.dir, "notes/routines/a.md")} {
		if err := os.Symlink(to, filepath.Join(w.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(dir, file string) result {
		var out, errOut bytes.Buffer
		status, err := forward.Run(t.Context(), at, forward.Call{Dir: dir, Args: []string{"check", file}}, nil, &out, &errOut)
		if err != nil {
			t.Error(err)
		}
		return result{status, out.String(), errOut.String()}
	}
	run := "notes/" + runFile(w.last()["id"].(string), "run.json")
	for _, tc := range []struct{ dir, file, want string }{
		{filepath.Join(w.dir, "notes"), "routines/a.md", "ok: next"},
		{filepath.Join(w.dir, "notes/routines"), "a.md", "ok: next"},
		{w.dir, "notes/real.md", "ok: next"},
		{w.dir, "notes/bad.yaml", "no-such-key"},
		{w.dir, "notes/none.yaml", "no such file"},
		{"", "notes/routines/a.md", "working directory is not known"},
		{"notes", "routines/a.md", "working directory is not known"},
		{w.dir, "config.yaml", "protected"}, {w.dir, "state/sessions.json", "protected"}, {w.dir, run, "protected"}, {w.dir, "notes/link.md", "outside"},
		{w.dir, secret, "outside"}, {w.home, "secret.md", "outside"}, {w.dir, "../home/secret.md", "outside"}, {"/proc/self", "environ", "protected"},
		{w.dir, "/dev/fd/0", "outside"}, {w.dir, "tool-policy.yaml", "protected"},
	} {
		r := check(tc.dir, tc.file)
		if ok := strings.HasPrefix(tc.want, "ok"); !strings.Contains(r.out, tc.want) || (r.status == 0) != ok || strings.Contains(r.out, "hunter2") {
			t.Errorf("in %s: %s: %+v, want %q", tc.dir, tc.file, r, tc.want)
		}
	}
	for file, status := range map[string]status{"notes/part.txt": statusOK, "config.yaml": statusRefused, "notes/link.md": statusRefused, run: statusRefused} {
		if r := w.forwarded(at, "", "ping", "--file", filepath.Join(w.dir, file)); r.status != int(status) {
			t.Errorf("ping --file %s: %+v", file, r)
		}
	}
}

// A file that is replaced by a link while it is opened does not lead out of where the run may read.
func TestForwardedFileSwapped(t *testing.T) {
	t.Parallel()
	w, _ := newTwins(t)
	at := w.socket()
	w.write("state/stolen.yaml", "hunter2: 1\n")
	w.write("notes/d/stolen.yaml", "harmless: 1\n")
	dir, spare, link := filepath.Join(w.dir, "notes/d"), filepath.Join(w.dir, "notes/spare"), filepath.Join(w.dir, "notes/link")
	if err := os.Symlink(filepath.Join(w.dir, "state"), link); err != nil {
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = os.Rename(dir, spare)
				_ = os.Rename(link, dir)
				_ = os.Rename(dir, link)
				_ = os.Rename(spare, dir)
			}
		}
	}()
	for range testkit.Full(200, 20) {
		if r := w.forwarded(at, "", "check", filepath.Join(dir, "stolen.yaml")); strings.Contains(r.out, "hunter2") {
			t.Fatalf("%+v", r)
		}
	}
	close(done)
	<-ended
}

// A link that the run may have planted shows it no file, and changes none: neither a list of tasks nor a job's file.
func TestForwardedPlantedLinks(t *testing.T) {
	t.Parallel()
	w, _ := newTwins(t)
	target := filepath.Join(w.home, "own.txt")
	planted := map[string]string{"tasks/todo.txt": "task list", "routines/x.md": "routine show x", "reminders/x.md": "reminder show x"}
	for name := range planted {
		w.write(name, "")
		if err := errors.Join(os.WriteFile(target, []byte("hunter2\n"), 0o600), os.Remove(filepath.Join(w.dir, name)), os.Symlink(target, filepath.Join(w.dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	at := w.socket()
	for _, line := range append(slices.Collect(maps.Values(planted)), "task add hunter3", "task done 1", "task rm 1") {
		if r := w.forwarded(at, "", strings.Fields(line)...); r.status == 0 || strings.Contains(r.out, "hunter2") || !strings.Contains(r.errOut, "symbolic link") {
			t.Errorf("%s: %+v", line, r)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "hunter2\n" {
		t.Errorf("behind the link: %q, %v", text, err)
	}
	if err := os.Rename(filepath.Join(w.dir, "tasks"), filepath.Join(w.dir, "elsewhere")); err != nil { // where the run may not write
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", filepath.Join(w.dir, "tasks")); err != nil {
		t.Fatal(err)
	}
	if r := w.forwarded(at, "", "task", "list"); !strings.Contains(r.out, "hunter2") {
		t.Errorf("the owner's link: %+v", r)
	}
}

// The engine's hooks and its tool server answer over the socket as by files.
func TestForwardedEngine(t *testing.T) {
	t.Parallel()
	files, socket := newTwins(t)
	at := socket.socket("mcp__mine__*")
	defer files.inRun()()
	use := func(tool, input string) string {
		return `{"hook_event_name":"PreToolUse","tool_name":"` + tool + `","tool_use_id":"t1","tool_input":` + input + `}`
	}
	session := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ping_user","arguments":{"message":"hello"}}}`, "",
	}, "\n")
	for _, tc := range []struct {
		line, in, want string
		status         int
	}{
		{"hook pre-tool", use("Read", `{"file_path":"notes/part.txt"}`), `"deny"`, 0},
		{"hook pre-tool", use("Read", `{"file_path":"notes/part.md"}`), `"allow"`, 0},
		{"hook pre-tool", use("Bash", `{"command":"rm -r ."}`), `"deny"`, 0},
		{"hook pre-tool", "no JSON", "", 2},
		{"hook stop", "{}", "", 0},
		{"mcp serve", session, `"text":"Sent."`, 0},
		{"mcp serve", "", "", 0},
	} {
		words := func(w *world) []string {
			return append([]string{"--data-dir", w.dir, "--config", filepath.Join(w.dir, "config.yaml")}, strings.Fields(tc.line)...)
		}
		want, got := files.pipe(tc.in, words(files)...), socket.forwarded(at, tc.in, words(socket)...)
		want.out = strings.ReplaceAll(want.out, files.dir, socket.dir)
		if got != want || got.status != tc.status || !strings.Contains(got.out, tc.want) {
			t.Errorf("%s: %.60s\nby files   %+v\nforwarded  %+v", tc.line, tc.in, want, got)
		}
	}
	events := func(w *world) string {
		return strings.ReplaceAll(w.read(runFile(w.last()["id"].(string), "events.jsonl")), w.dir, socket.dir)
	}
	if a, b := events(files), events(socket); a != b {
		t.Errorf("events:\nby files   %s\nforwarded  %s", a, b)
	}
}

// The process of a run serves many of its processes at once, and a run's end ends what it serves.
func TestForwardedAtOnce(t *testing.T) {
	t.Parallel()
	w, _ := newTwins(t)
	at := w.socket()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			r := result{status: 75}
			for r.status == 75 { // on a slow machine one may wait in vain for the lock that 99 others take before it
				r = w.forwarded(at, "", "task", "add", fmt.Sprintf("task %d of many", i))
			}
			if r.status != 0 || r.errOut != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	all.Wait()
	if n := strings.Count(w.read("tasks/todo.txt"), " of many"); n != 100 {
		t.Errorf("%d tasks", n)
	}
}

// Without an answer a forwarded command fails, a hook so that the engine refuses what it asked about; it never uses the files.
func TestForwardedToNobody(t *testing.T) {
	t.Parallel()
	w, _ := newTwins(t)
	before := w.read("tasks/todo.txt")
	dead := filepath.Join(t.TempDir(), "s") // as a process leaves it that was killed
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	mute := filepath.Join(t.TempDir(), "m")
	silent, err := net.Listen("unix", mute)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, at := range []string{"/nonexistent/socket", dead, mute} {
		for line, want := range map[string]status{
			"task add x": statusUnavailable, "help": statusUnavailable, "hook pre-tool": hookError, "mcp serve": statusUnavailable,
			"--data-dir " + w.dir + " --config x hook stop": hookError,
		} {
			ctx, cancel := context.WithCancel(t.Context())
			if at == mute {
				go func() {
					if c, err := silent.Accept(); err == nil {
						cancel()
						_, _ = io.Copy(io.Discard, c)
					}
				}()
			}
			var errOut bytes.Buffer
			status := forwardTo(ctx, at, strings.Fields(line), strings.NewReader("{}"), nil, &errOut)
			cancel()
			if status != int(want) || strings.Count(errOut.String(), "\n") != 1 || !strings.Contains(errOut.String(), "does not answer: ") {
				t.Errorf("%s: %s: exit status %d, %s", at, line, status, errOut.String())
			}
		}
	}
	if after := w.read("tasks/todo.txt"); after != before {
		t.Errorf("the tasks are %s", after)
	}
}

// The socket of a run whose path would be too long is in a directory of this user's alone, and goes with the run.
func TestLongSocketPath(t *testing.T) {
	t.Parallel()
	w, _ := newTwins(t)
	long := filepath.Join(filepath.Dir(w.dir), strings.Repeat("long", 30))
	if err := os.Rename(w.dir, long); err != nil {
		t.Fatal(err)
	}
	w.dir, w.env["OLLIM_DATA_DIR"] = long, long
	var at string
	t.Run("run", func(t *testing.T) {
		w.t = t
		at = w.socket()
		if info, err := os.Stat(filepath.Dir(at)); err != nil || len(at) > 100 || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
		if r := w.forwarded(at, "", "task", "list"); r.status != 0 || !strings.Contains(r.out, "buy milk") {
			t.Errorf("%+v", r)
		}
	})
	if _, err := os.Lstat(filepath.Dir(at)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", at, err)
	}
}
