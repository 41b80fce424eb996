package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/agentapi"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// withOpencode is a data directory whose engine is the real opencode, over an API server of the test.
func withOpencode(t *testing.T) (*command, *anthropicapi.Server) {
	t.Helper()
	agentapi.InCI(t)
	takeTurn(t)
	command := agentapi.Command(t, "opencode", "acp")
	api := anthropicapi.New(t)
	c := newCommand(t)
	c.ok("config", "set", "env", "ANTHROPIC_API_KEY=sk-ant-test-key-of-the-owner")
	c.ok(append([]string{"config", "set", "acp.opencode.command"}, command...)...)
	c.ok("config", "set", "acp.opencode.env", "ANTHROPIC_BASE_URL="+api.URL())
	c.ok("config", "set", "engine", "acp:opencode")
	c.ok("config", "set", "quiet", "none")
	return c, api
}

// calls answers a prompt with a use of a tool, and its result with a text.
func calls(api *anthropicapi.Server, tool string, input any, then string) {
	api.Reply(anthropicapi.Use(tool, input), anthropicapi.Reply{Text: then})
}

// TestModesOnOpencode: a routine's session goes on over three fires, a forked one sees main, an isolated one does not, and main can be
// compacted.
func TestModesOnOpencode(t *testing.T) {
	t.Parallel()
	c, api := withOpencode(t)
	for name, flags := range map[string]string{"forked": "", "alone": "isolated: true\n", "daily": "session: persistent\n"} {
		c.write("routines/"+name+".md", "---\nid: "+name+"\ncron: \"@yearly\"\nbackground: true\n"+flags+"---\nLook around for "+name+".\n")
	}
	for i, word := range []string{"first", "second", "third"} {
		api.Reply(anthropicapi.Reply{Text: word + " answer"})
		c.ok("fire", "daily")
		requests := api.Requests()
		q := requests[len(requests)-1]
		if len(requests) != i+1 || i > 0 && !q.Has("first answer") || i > 1 && !q.Has("second answer") || !strings.Contains(string(q.Raw), "You work alone and in the background") {
			t.Fatalf("fire %d of %d requests has not the history:\n%.3000s", i+1, len(requests), q.Raw)
		}
	}
	api.Reply(anthropicapi.Reply{Text: "good evening"})
	if said := c.ok("chat", "hello there"); said != "good evening\n" {
		t.Errorf("%q", said)
	}
	calls(api, "ollim_report_updates", map[string]string{"message": "all is quiet"}, "done")
	c.ok("fire", "forked")
	api.Reply(anthropicapi.Reply{Text: "done"})
	c.ok("fire", "alone")
	api.Reply(anthropicapi.Reply{Text: "you know now"})
	c.ok("chat", "what did I miss?")
	requests := api.Requests()[3:]
	fork, alone, main := requests[1], requests[3], requests[4]
	if !fork.Has("hello there") || !fork.Has("[routine-bg:forked]") || alone.Has("hello there") {
		t.Error("the fork does not see main, or the isolated run does")
	}
	if !main.Has("all is quiet") || main.Has("[routine-bg:forked]") || !main.Has("good evening") {
		t.Error("main does not hear of the fork, or is one")
	}
	api.Reply(anthropicapi.Reply{Text: "They said hello."})
	c.ok("session", "compact", "main", "keep the greeting")
	api.Reply(anthropicapi.Reply{Text: "still here"})
	c.ok("chat", "are you there?")
	all := api.Requests()
	if last := all[len(all)-1]; !last.Has("They said hello.") || last.Has("what did I miss?") {
		t.Errorf("main is not compacted:\n%.3000s", last.Raw)
	}
	c.nothingLeft()
}

// TestToolsOnOpencode: tools under the policy and under the seal. A denied command is not executed, a write outside is refused by the kernel,
// ollim's own tools work, and the record has all of it.
func TestToolsOnOpencode(t *testing.T) {
	t.Parallel()
	c, api := withOpencode(t)
	outside := t.TempDir()
	if err := os.Mkdir(filepath.Join(c.data, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.write("notes/a.md", "the needle\n")
	c.ok("routine", "add", "work", "--id", "work", "--cron", "@yearly", "--background", "--isolated", "--allow-ping",
		"--allowed-tools", "Write(notes/**.md)", "--allowed-tools", "Bash(touch *)", "Work.")
	type use struct {
		tool  string
		input map[string]any
		want  string // part of the result
	}
	const early = "\x00"           // before the result of a use that fails before opencode asks
	for _, uses := range [][]use{{ // a turn has six prompts, one after each refusal
		{"read", map[string]any{"filePath": filepath.Join(c.data, "notes/a.md")}, "the needle"},
		{"write", map[string]any{"filePath": filepath.Join(c.data, "notes/b.md"), "content": "new"}, "success"},
		{"bash", map[string]any{"command": "touch notes/c.md", "description": "d"}, ""},
		{"edit", map[string]any{"filePath": filepath.Join(c.data, "notes/a.md"), "oldString": "not there", "newString": "x"}, early + "Could not find"},
		{"glob", map[string]any{"path": c.data}, early + "invalid arguments"},
		{"bash", map[string]any{"command": "touch " + outside + "/escaped", "description": "d"}, "denied"},
		{"ollim_ping_user", map[string]any{"message": "the needle is found"}, ""},
	}, {
		{"read", map[string]any{"filePath": filepath.Join(c.data, "config.yaml")}, "rejected"},
		{"read", map[string]any{"filePath": filepath.Join(outside, "x")}, "rejected"},
		{"grep", map[string]any{"pattern": "needle", "path": filepath.Join(c.data, "notes")}, "rejected"}, // also of files that no pattern allows
		{"write", map[string]any{"filePath": filepath.Join(c.data, "routines/b.md"), "content": "new"}, "rejected"},
		{"bash", map[string]any{"command": "touch notes/d.md; id", "description": "d"}, "rejected"},
	}} {
		before := len(api.Requests())
		for _, u := range uses {
			api.Reply(anthropicapi.Use(u.tool, u.input))
		}
		api.Reply(anthropicapi.Reply{Text: "done"})
		c.ok("fire", "work")
		all := api.Requests()[before:]
		if len(all) != len(uses)+1 {
			t.Fatalf("%d requests for %d uses:\n%s", len(all), len(uses), c.ok("run", "log", "work"))
		}
		asked := 0
		for i, u := range uses {
			want, isEarly := strings.CutPrefix(u.want, early)
			if !isEarly {
				asked++
			}
			if results := all[i+1].ToolResults(); len(results) != 1 || !strings.Contains(results[0].ResultText, want) {
				t.Errorf("%s %v: %+v, want %q", u.tool, u.input, results, want)
			}
		}
		if log := c.ok("run", "log", "work"); strings.Count(log, " verdict ") < asked {
			t.Errorf("not %d verdicts:\n%s", asked, log)
		}
	}
	for name, want := range map[string]bool{"notes/b.md": true, "notes/c.md": true, "notes/d.md": false, "routines/b.md": false, outside + "/escaped": false} {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(c.data, name)
		}
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	show := strings.Join(strings.Fields(c.ok("run", "show", "--json", "work")), " ")
	if !strings.Contains(show, `"guarantees": [ "asks: all", "reads", "branch", "max-cost", "key", "records", "max-turns" ]`) {
		t.Errorf("the record: %s", show)
	}
	c.nothingLeft()
}
