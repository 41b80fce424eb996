package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// withNative is a data directory whose engine is the native one, before a server of the API on this machine.
func withNative(t testing.TB) (*command, *anthropicapi.Server) {
	t.Helper()
	api := anthropicapi.New(t)
	c := newCommand(t)
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=k")
	c.ok("config", "set", "native.base-url", api.URL())
	c.ok("config", "set", "engine", "native")
	return c, api
}

// routineSession is the routine's.
func (c *command) routineSession(routine string) string {
	text, _ := os.ReadFile(filepath.Join(c.data, "state/routine_sessions", routine))
	return strings.TrimSpace(string(text))
}

// lines are the messages of a session's transcript, in full.
func (c *command) lines(id string) (list []string) {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.data, "sessions", "*", "*_"+id+".jsonl"))
	if err != nil || len(found) != 1 {
		c.t.Fatalf("transcripts of %q: %q %v", id, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		list = append(list, line)
	}
	return list
}

// TestPersistentRoutineOnNative: three fires carry context across, the third after a compaction by the agent's own words.
func TestPersistentRoutineOnNative(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.write("routines/daily-market.md", daily)
	api.Reply(anthropicapi.Reply{Text: "AAPL is at 210."})
	c.ok("fire", "daily")
	first := c.routineSession("daily")
	api.Reply(anthropicapi.Use("compact_session", map[string]string{"instructions": "keep: AAPL"}), anthropicapi.Reply{Text: "AAPL was 210."}, anthropicapi.Reply{Text: "done"})
	c.ok("fire", "daily")
	second := c.routineSession("daily")
	if second == first || second == "" {
		t.Fatalf("session %q, was %q", second, first)
	}
	api.Reply(anthropicapi.Reply{Text: "still 210"})
	c.ok("fire", "daily")
	requests := api.Requests()
	last := requests[len(requests)-1]
	if c.routineSession("daily") != second || !last.Has("AAPL was 210.") || last.Has("AAPL is at 210.") {
		t.Errorf("session %q; the last question has %v", c.routineSession("daily"), last.Messages)
	}
	if history := c.ok("session", "history", "routine:daily"); !strings.Contains(history, "compacted\t"+second+"\t"+first) {
		t.Error(history)
	}
}

// TestModesOnNative: main, a fork that sees it, an isolated run that does not; each has a transcript of its own.
func TestModesOnNative(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	for name, flags := range map[string]string{"forked": "", "alone": "isolated: true\n"} {
		c.write("routines/"+name+".md", "---\nid: "+name+"\ncron: \"@yearly\"\nbackground: true\n"+flags+"---\nLook around.\n")
	}
	api.Reply(anthropicapi.Reply{Text: "good evening"})
	if said := c.ok("chat", "hello there"); said != "good evening\n" {
		t.Errorf("%q", said)
	}
	api.Reply(anthropicapi.Use("report_updates", map[string]string{"message": "all is quiet"}), anthropicapi.Reply{Text: "done"})
	c.ok("fire", "forked")
	api.Reply(anthropicapi.Reply{Text: "done"})
	c.ok("fire", "alone")
	api.Reply(anthropicapi.Reply{Text: "you know now"})
	c.ok("chat", "what did I miss?")
	requests := api.Requests()
	fork, alone, main := requests[1], requests[3], requests[4]
	if !fork.Has("hello there") || !fork.Has("[routine-bg:forked]") || alone.Has("hello there") {
		t.Error("the fork does not see main, or the isolated run does")
	}
	if !main.Has("all is quiet") || main.Has("[routine-bg:forked]") || !main.Has("good evening") {
		t.Error("main does not hear of the fork, or is one")
	}
	if found, _ := filepath.Glob(filepath.Join(c.data, "sessions", "*", "*_n-*.jsonl")); len(found) != 3 {
		t.Errorf("transcripts %q", found)
	}
}

// TestAskOnNative: a question has no part in the main conversation, also where that is kept: it continues with a branch of it at
// most. One that was refused for a while is asked again, also without a session.
func TestAskOnNative(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Text: "good evening"})
	c.ok("chat", "private words")
	main := strings.TrimSpace(c.ok("session", "id", "main"))
	ask := func(args ...string) (string, int) {
		cmd := c.cmd(append([]string{"-p", "-n"}, args...)...)
		cmd.Dir = c.data
		out, err := cmd.Output()
		return string(out), status(err)
	}
	if _, got := ask("-c", "and now?"); got != 66 {
		t.Errorf("-c in the data directory: exit %d", got)
	}
	before := c.lines(main)
	api.Reply(anthropicapi.Reply{Text: "a branch"})
	if said, got := ask("-r", main, "and now?"); said != "a branch\n" || got != 0 {
		t.Errorf("%q, exit %d", said, got)
	}
	if requests := api.Requests(); !requests[len(requests)-1].Has("private words") {
		t.Error("the branch does not know what was said")
	}
	if after := c.lines(main); len(after) != len(before) {
		t.Errorf("main has grown: %q", after)
	}
	api.Reply(anthropicapi.Reply{Text: "again"})
	if said, got := ask("-c", "go on"); said != "again\n" || got != 0 {
		t.Errorf("%q, exit %d", said, got)
	}
	api.Reply(anthropicapi.Reply{Status: 529}, anthropicapi.Reply{Text: "once"})
	if said, got := ask("--no-session", "just once"); said != "once\n" || got != 0 {
		t.Errorf("%q, exit %d", said, got)
	}
	if found, _ := filepath.Glob(filepath.Join(c.data, "sessions", "*", "*.jsonl")); len(found) != 2 {
		t.Errorf("transcripts %q", found)
	}
}

// TestAskElsewhere: a link leads to the same sessions; what is not to be kept does not stand in what is; what the agent writes is as
// the umask has it.
func TestAskElsewhere(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(real, 0o755), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	ask := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-c", `umask 022; exec "$@"`, "sh", c.path, "-p", "-n"}, args...)...)
		cmd.Dir, cmd.Env = dir, c.cmd().Env
		cmd.Env = append(cmd.Env, "PWD="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	use := func(path string) anthropicapi.ToolUse {
		return anthropicapi.ToolUse{Name: "Write", Input: map[string]string{"file_path": path, "content": "x"}}
	}
	api.Reply(anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{use("out/a.txt")}}, anthropicapi.Reply{Text: "one"})
	ask(real, "--allowed-tools", "Write(out/*.txt)", "first words")
	for path, want := range map[string]os.FileMode{"out": 0o755, "out/a.txt": 0o644} {
		if info, err := os.Stat(filepath.Join(real, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	api.Reply(anthropicapi.Reply{Text: "two"})
	ask(link, "-c", "and now?")
	requests := api.Requests()
	if !requests[len(requests)-1].Has("first words") {
		t.Error("another session behind the link")
	}
	api.Reply(anthropicapi.Reply{Text: "three"})
	ask(real, "-c", "--no-session", "secretword")
	requests = api.Requests()
	if !requests[len(requests)-1].Has("first words") {
		t.Error("the session is not known")
	}
	found, _ := filepath.Glob(filepath.Join(c.data, "sessions", "*", "*.jsonl"))
	if len(found) != 1 {
		t.Fatalf("transcripts %q", found)
	}
	if text, err := os.ReadFile(found[0]); err != nil || strings.Contains(string(text), "secretword") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestKilledQuestionIsNotKept: what is asked with --no-session leaves none of its words also where ollim was killed, as soon as the
// next tick has found that out. What is to be kept is kept.
func TestKilledQuestionIsNotKept(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	killed := func(words string, more ...string) {
		t.Helper()
		cmd := c.cmd(append([]string{"-p", "-n", words}, more...)...)
		api.Reply(anthropicapi.Reply{Fault: apiserver.Endless})
		asked := len(api.Requests())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		api.WaitRequests(asked+1, patience)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		c.ok("tick")
		if got := c.outcome(); got != "interrupted" {
			t.Errorf("%s: outcome %s", words, got)
		}
	}
	words := func() (found []string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(c.data, "sessions", "*", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, regexp.MustCompile("(secret|common)words").FindString(string(text)))
		}
		return found
	}
	killed("secretwords", "--no-session")
	if got := words(); len(got) != 0 {
		t.Errorf("kept %q", got)
	}
	killed("commonwords")
	if got := words(); !slices.Equal(got, []string{"commonwords"}) {
		t.Errorf("kept %q", got)
	}
}

// TestOrphanOnNative: what a command has started and that outlives a kill, as the command does not, keeps the job's lock, so that
// nothing is begun beside it.
func TestOrphanOnNative(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.ok("config", "set", "seal", "off") // TestOrphanOfASealedCommand shows the other case
	c.write("slow.sh", "#!/bin/sh\nenv >environ\nsh -c 'echo begin >>log; while [ ! -e go ]; do sleep 0.05; done; echo end >>log'\necho whole >>log\n")
	if err := os.Chmod(filepath.Join(c.data, "slow.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "work", "--id", "work", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(./slow.sh)", "Work.")
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if len(q.ToolResults()) == 0 {
			return anthropicapi.Use("Bash", map[string]string{"command": "./slow.sh"})
		}
		return anthropicapi.Reply{Text: "done"}
	})
	fire := c.cmd("fire", "work")
	if err := fire.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command", func() bool { _, err := os.Stat(filepath.Join(c.data, "log")); return err == nil })
	_ = fire.Process.Kill()
	_ = fire.Wait()
	if got := status(c.cmd("fire", "work").Run()); got != 75 {
		t.Errorf("beside the command: exit %d, want 75", got)
	}
	c.write("go", "")
	c.ok("fire", "--wait", "5m", "work")
	if environ := c.read("environ"); strings.Contains(environ, "API_KEY") || !strings.Contains(environ, "OLLIM_RUN=") {
		t.Errorf("the command's environment: %s", environ)
	}
	if log := c.read("log"); log != "begin\nend\nbegin\nend\nwhole\n" {
		t.Errorf("%q", log)
	}
}

// TestToolsOnNative: real tools under the real policy, each use with a verdict.
func TestToolsOnNative(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	if err := os.Mkdir(filepath.Join(c.data, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.write("notes/a.md", "the needle\n")
	c.ok("routine", "add", "work", "--id", "work", "--cron", "@yearly", "--background", "--isolated",
		"--allowed-tools", "Write(notes/**.md)", "--allowed-tools", "Bash(echo *)", "Work.")
	type use struct {
		tool  string
		input map[string]any
		want  string // of the result; "" is an error
	}
	uses := []use{
		{"Read", map[string]any{"file_path": "notes/a.md"}, "the needle"},
		{"Read", map[string]any{"file_path": "config.yaml"}, ""},
		{"Read", map[string]any{"file_path": "state/sessions.json"}, ""},
		{"Grep", map[string]any{"pattern": "needle", "glob": "**.md"}, "notes/a.md"},
		{"Glob", map[string]any{"pattern": "notes/*.md"}, "notes/a.md"},
		{"Write", map[string]any{"file_path": "notes/b.md", "content": "new"}, "notes/b.md"},
		{"Write", map[string]any{"file_path": "routines/b.md", "content": "new"}, ""},
		{"Bash", map[string]any{"command": "echo hello"}, "hello"},
		{"Bash", map[string]any{"command": "echo hello; id"}, ""},
		{"Bash", map[string]any{"command": "ollim approve --all"}, ""},
	}
	reply := anthropicapi.Reply{}
	for i, u := range uses {
		reply.ToolUses = append(reply.ToolUses, anthropicapi.ToolUse{ID: fmt.Sprintf("use_%d", i), Name: u.tool, Input: u.input})
	}
	api.Reply(reply, anthropicapi.Reply{Text: "done"})
	c.ok("fire", "work")
	results := api.Requests()[1].ToolResults()
	if len(results) != len(uses) {
		t.Fatalf("%d results, want %d", len(results), len(uses))
	}
	for i, u := range uses {
		if r := results[i]; r.IsError != (u.want == "") || !strings.Contains(r.ResultText, u.want) {
			t.Errorf("%s %v: %v %q, want %q", u.tool, u.input, r.IsError, r.ResultText, u.want)
		}
	}
	if text := c.read("notes/b.md"); text != "new" {
		t.Errorf("notes/b.md: %q", text)
	}
	if n := strings.Count(c.ok("run", "log", "work"), " verdict "); n != len(uses) {
		t.Errorf("%d verdicts for %d uses", n, len(uses))
	}
}

// TestNativeOnOpenAI: a turn with two tools at once on a service that speaks like OpenAI's, and the session goes on.
func TestNativeOnOpenAI(t *testing.T) {
	t.Parallel()
	api := openaiapi.New(t)
	c := newCommand(t)
	c.ok("config", "set", "native.provider", "openai")
	c.ok("config", "set", "native.base-url", api.URL())
	c.ok("config", "set", "engine", "native")
	if said := c.fails(78, "chat", "hello"); !strings.Contains(said, "ollim config set native.model MODEL") {
		t.Errorf("%q", said)
	}
	api.Reply(openaiapi.Reply{Text: "hi"})
	if said := c.ok("ask", "-n", "--model", "qwen2", "hello"); said != "hi\n" {
		t.Errorf("%q", said)
	}
	c.ok("config", "set", "native.model", "qwen3")
	c.write("routines/daily-market.md", daily)
	api.Reply(openaiapi.Reply{Text: "looking", ToolCalls: []openaiapi.ToolCall{
		{ID: "a", Name: "Read", Arguments: `{"file_path": "routines/daily-market.md"}`}, {ID: "b", Name: "report_updates", Arguments: `{"message": "all is quiet"}`},
	}}, openaiapi.Reply{Text: "done"})
	c.ok("fire", "daily")
	api.Reply(openaiapi.Reply{Text: "again"})
	c.ok("fire", "daily")
	requests := api.Requests()
	last := string(requests[len(requests)-1].Raw)
	for _, want := range []string{"Check the market.", "looking", `"role":"tool"`, "qwen3"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last question lacks %q: %s", want, last)
		}
	}
	if list := c.ok("updates", "list"); !strings.Contains(list, "all is quiet") {
		t.Error(list)
	}
}

// TestKillDuringNative kills tool-using fires with -9 at random moments. The conversation that is left is always one that the
// API accepts, nothing is said twice, and no tool with effects is silently run twice. OLLIM_TEST_ROUNDS raises the few rounds.
func TestKillDuringNative(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.write("bump", "#!/bin/sh\necho $1 >>log/bumped\n")
	if err := os.Chmod(filepath.Join(c.data, "bump"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "daily", "--id", "daily", "--cron", "@yearly", "--background", "--session", "persistent",
		"--allowed-tools", "Bash(./bump *)", "--allowed-tools", "Write(./log/**)", "Check the market.")
	for _, key := range []string{"runs-per-day", "per-day", "per-month", "per-run"} {
		c.ok("config", "set", "spend."+key, "none")
	}
	var fires, used atomic.Int64
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		n := len(q.ToolResults())
		if n == 0 && fires.Add(1)%3 > 0 || n > 0 && rand.Intn(2) == 0 { // of two fires in a row, one uses a tool
			id := used.Add(1)
			return anthropicapi.Reply{Text: "on it", StreamDelay: time.Millisecond, ToolUses: []anthropicapi.ToolUse{{Name: "Bash", Input: map[string]string{"command": fmt.Sprintf("./bump use-%d", id)}}}}
		}
		return anthropicapi.Reply{Text: "done", StreamDelay: time.Millisecond}
	})
	random := rand.New(rand.NewSource(1))
	killed := 0
	rounds := rounds(t, 15)
	for round := 0; killed < rounds && round < 3*rounds; round++ {
		cmd := c.cmd("fire", "daily", "-")
		cmd.Stdin = strings.NewReader(fmt.Sprintf("round %d\n", 2*round))
		if killAfter(cmd, time.Duration(random.Intn(60_000))*time.Microsecond) == -1 {
			killed++
		}
		c.stateParses()
		before := c.routineSession("daily")
		eventually(t, fmt.Sprintf("round %d: the next fire", round), func() bool {
			next := c.cmd("fire", "daily", "-")
			next.Stdin = strings.NewReader(fmt.Sprintf("round %d\n", 2*round+1))
			return status(next.Run()) == 0
		})
		if after := c.routineSession("daily"); before != "" && after != before {
			t.Fatalf("round %d: session %q, was %q", round, after, before)
		}
	}
	t.Logf("%d fires were killed; %d tool uses", killed, used.Load())
	if killed < rounds/2 {
		t.Errorf("only %d fires were killed in time, want %d", killed, rounds/2)
	}
	if used.Load() == 0 {
		t.Error("no fire used a tool")
	}
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
	c.saidOnce()
	c.bumpedOnce()
}

// saidOnce wants every prompt, every use of a tool and every result once in the transcript.
func (c *command) saidOnce() {
	seen := map[string]int{}
	for _, line := range c.lines(c.routineSession("daily")) {
		for _, mark := range onceMarks.FindAllString(line, -1) {
			seen[mark]++
		}
	}
	for mark, n := range seen {
		if n > 1 {
			c.t.Errorf("%d times: %s", n, mark)
		}
	}
	if len(seen) < 10 {
		c.t.Errorf("only %d messages", len(seen))
	}
}

var onceMarks = regexp.MustCompile(`round \d+\\n|"id":"toolu_\w+"|"tool_use_id":"toolu_\w+"`)

// bumpedOnce wants no use to have been run twice.
func (c *command) bumpedOnce() {
	f, err := os.Open(filepath.Join(c.data, "log/bumped"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if seen[s.Text()] {
			c.t.Errorf("run twice: %s", s.Text())
		}
		seen[s.Text()] = true
	}
}
