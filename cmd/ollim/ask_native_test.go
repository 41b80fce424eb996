package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// asked is how one question ended.
type asked struct {
	out, said string
	status    int
}

func (c *command) question(args ...string) asked {
	c.t.Helper()
	var out, said bytes.Buffer
	cmd := c.cmd(append([]string{"-p", "-n"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.data, &out, &said
	err := cmd.Run()
	return asked{out.String(), said.String(), status(err)}
}

// TestAskRefusedForNow: a service that refuses for now is asked again, and that is told; one that wants more patience than a
// question has ends it at once.
func TestAskRefusedForNow(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Status: 529}, anthropicapi.Reply{Text: "ok"})
	if a := c.question("hi"); a.out != "ok\n" || a.status != 0 || !strings.Contains(a.said, "ollim: warning: retried: ") {
		t.Errorf("%+v", a)
	}
	api.Reply(anthropicapi.Use("Glob", map[string]string{"pattern": "*"}), anthropicapi.Reply{Status: 429, RetryAfter: "3600"})
	for _, text := range []string{"in the middle of the work", "at once"} {
		if a := c.question(text); a.out != "" || a.status == 0 || !strings.Contains(a.said, "retry after 1h") {
			t.Errorf("%s: %+v", text, a)
		}
		api.Reply(anthropicapi.Reply{Status: 429, RetryAfter: "3600"})
	}
}

// TestAskKeyRefused: who is refused for the key is told where that is kept.
func TestAskKeyRefused(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Status: 401})
	if a := c.question("hi"); a.out != "" || a.status != 69 || !strings.Contains(a.said, "(it is ANTHROPIC_API_KEY of env in config.yaml)") {
		t.Errorf("%+v", a)
	}
}

// TestAskLimits: what its owner has typed counts, also where the settings say less; else these do. What is not whole is not begun.
func TestAskLimits(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	c.ok("config", "set", "models", "priced alias=sonnet window=10000000 output=1000 in=1 out=1 cache-read=0 cache-write=0")
	dear := anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "Glob", Input: map[string]string{"pattern": "*"}}}, Usage: anthropicapi.Usage{In: 2_000_000}}
	for _, tc := range []struct {
		perRun, want string
		args         []string
	}{
		{"1.00", "cost limit reached: 2.00 of 1.00 USD", nil},
		{"1.00", "", []string{"--max-cost", "10"}},
		{"none", "", nil},
		{"none", "cost limit reached: 2.00 of 0.0500 USD", []string{"--max-cost", "0.05"}},
		{"0", "", nil}, // it stops automatic runs
		{"none", "turn limit reached: 1 answer", []string{"--max-turns", "1"}},
	} {
		c.ok("config", "set", "spend.per-run", tc.perRun)
		api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
			if len(q.ToolResults()) > 0 {
				return anthropicapi.Reply{Text: "done"}
			}
			return dear
		})
		a := c.question(append(tc.args, "hi")...)
		if ok := tc.want == ""; ok != (a.status == 0) || !strings.Contains(a.said, tc.want) || ok && a.out != "done\n" {
			t.Errorf("%+v: %+v", tc, a)
		}
	}
	api.Handle(nil)
	api.Reply(anthropicapi.Reply{ToolUses: dear.ToolUses, StopReason: "max_tokens"})
	if a := c.question("hi"); a.status != 1 || !strings.Contains(a.said, "cut at its token limit") {
		t.Errorf("%+v", a)
	}
	if log := c.ok("run", "log", "ask"); strings.Contains(log, "tool_use") {
		t.Errorf("a tool of an answer that is not whole was used:\n%s", log)
	}
}

// TestAskCounts: num_turns counts the answers of the model, as --max-turns does.
func TestAskCounts(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	use := anthropicapi.Use("Glob", map[string]string{"pattern": "*"})
	api.Reply(use, use, anthropicapi.Reply{Text: "done"})
	var said struct {
		Turns  int    `json:"num_turns"`
		Result string `json:"result"`
	}
	if a := c.question("--output-format", "json", "hi"); json.Unmarshal([]byte(a.out), &said) != nil || said.Turns != 3 || said.Result != "done" {
		t.Errorf("%+v", a)
	}
}

// TestAskEvents: stream-json is an object a line on an engine that streams, too, and a retry is one of them.
func TestAskEvents(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Status: 529}, anthropicapi.Reply{Text: strings.Repeat("some words ", 20)})
	a := c.question("--output-format", "stream-json", "hi")
	for line := range strings.Lines(a.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q", line)
		}
	}
	if a.status != 0 || a.said != "" || strings.Count(a.out, `"subtype":"api_retry"`) != 1 {
		t.Errorf("%+v", a)
	}
}

// TestAskOldMain: a question about what main was before a compaction is asked of that, not of what became of it.
func TestAskOldMain(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	api.Reply(anthropicapi.Reply{Text: "one"})
	c.ok("chat", "first words")
	old := strings.TrimSpace(c.ok("session", "id", "main"))
	api.Reply(anthropicapi.Reply{Text: "the summary"})
	c.ok("session", "compact", "main", "all")
	api.Reply(anthropicapi.Reply{Text: "three"})
	a := c.question("-r", old, "and?")
	requests := api.Requests()
	if last := requests[len(requests)-1]; a.out != "three\n" || !last.Has("first words") || last.Has("the summary") {
		t.Errorf("%+v", a)
	}
	if now := c.ok("session", "id", "main"); strings.TrimSpace(now) == old {
		t.Error("main was not compacted")
	}
}

// TestAskStreams: a terminal shows the text before the answer has ended.
func TestAskStreams(t *testing.T) {
	t.Parallel()
	script := testkit.Program(t, "script", "bsdutils")
	c, api := withNative(t)
	rest := make(chan struct{})
	api.Reply(anthropicapi.Reply{Text: "Let me look.", ToolUses: []anthropicapi.ToolUse{{Name: "Glob", Input: map[string]string{"pattern": "*"}}}},
		anthropicapi.Reply{Text: "Nothing.", Hold: rest})
	cmd := c.cmd()
	cmd.Path, cmd.Args = script, []string{"script", "-qefc", c.path + " -p -n hi", os.DevNull}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	if line, err := in.ReadString('\n'); line != "Let me look.\r\n" {
		t.Errorf("%q, %v", line, err)
	}
	close(rest)
	if line, err := in.ReadString('\n'); line != "Nothing.\r\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSyncedBeforeEffects: the transcript is on disk before a tool that changes something begins, and is not waited for where one
// only looks.
func TestSyncedBeforeEffects(t *testing.T) {
	t.Parallel()
	strace := testkit.Program(t, "strace", "strace")
	c, api := withNative(t)
	echo := anthropicapi.Use("Bash", map[string]string{"command": "echo effect"})
	for tool, reply := range map[string]anthropicapi.Reply{"Bash": echo, "Glob": anthropicapi.Use("Glob", map[string]string{"pattern": "*.none"})} {
		api.Reply(reply, anthropicapi.Reply{Text: "done"})
		log := filepath.Join(t.TempDir(), "trace")
		cmd := c.cmd()
		cmd.Path, cmd.Args = strace, []string{"strace", "-f", "-y", "-o", log, "-e", "trace=fsync,execve,write", "-s", "300", c.path, "-p", "-n", "--allowed-tools", "Bash(echo *)", "hi"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), `\"name\":\"`+tool+`\"`) // the answer goes into the transcript
		rest, _, _ = strings.Cut(rest, `\"type\":\"tool_result\"`)
		before, _, begun := strings.Cut(rest, `echo", "effect"`)
		if begun != (tool == "Bash") {
			t.Fatalf("%s: the command was begun: %v\n%s", tool, begun, text)
		}
		if synced := regexp.MustCompile(`fsync\(\d+<[^>]*_n-[0-9a-f]+\.jsonl`).MatchString(before); synced != (tool == "Bash") {
			t.Errorf("%s: synced: %v\n%s", tool, synced, before)
		}
	}
}
