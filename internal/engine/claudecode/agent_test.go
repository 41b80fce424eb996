package claudecode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

func looker() *engine.Subagent {
	return &engine.Subagent{Name: "looker", Description: "Looks at things.", Prompt: "You are the LOOKER."}
}

func delegate(to string) anthropicapi.ToolUse {
	return anthropicapi.ToolUse{Name: "Agent", Input: map[string]any{"description": "look", "prompt": "Look at it.", "subagent_type": to}}
}

// bySubagent reports whether a subagent's own conversation asks.
func bySubagent(q anthropicapi.Request) bool { return strings.Contains(q.System, "LOOKER") }

// TestSubagent: what a subagent does is judged like the rest, its words are a tool's result, its requests are kept, and
// its cost is the run's.
func TestSubagent(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	file := w.place(w.root, "a.md", "PUBLIC")
	w.api.Reply(
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{delegate("looker")}},
		anthropicapi.Reply{Text: "aside", Thinking: "hm", ToolUses: []anthropicapi.ToolUse{{Name: "Bash", Input: map[string]any{"command": "cat /etc/passwd"}}}},
		anthropicapi.Use("Read", map[string]any{"file_path": file}),
		anthropicapi.Use("mcp__ollim__note", map[string]any{"text": "x"}),
		anthropicapi.Reply{Text: "It is PUBLIC.", Usage: anthropicapi.Usage{In: 1_000_000}},
		anthropicapi.Reply{Text: "done"},
	)
	a := looker()
	a.Model = "haiku"
	var all kept
	r := engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{Subagent: a}, Run: engine.Run{Sent: all.keep}}
	got, err := w.run(r, "Read(./**.md)", "Bash(ollim help)", "Task(looker)", "mcp__ollim__note")
	if err != nil || got.Text != "done" {
		t.Fatal(got, err)
	}
	all.check(w, 6, got.Cost)
	verdicts := map[string]bool{}
	for _, v := range w.verdicts() {
		verdicts[v.Agent+" "+v.Tool] = v.Allowed
	}
	for use, want := range map[string]bool{" Agent": true, "looker Bash": false, "looker Read": true, "looker mcp__ollim__note": true} {
		if allowed, judged := verdicts[use]; !judged || allowed != want {
			t.Errorf("%q: judged %v, allowed %v", use, judged, allowed)
		}
	}
	for i, q := range w.api.Requests() {
		if (strings.Contains(q.Model, "haiku") && bySubagent(q)) != (i > 0 && i < 5) {
			t.Errorf("request %d: model %s, system %.80q", i, q.Model, q.System)
		}
		if names := q.ToolNames(); !slices.Contains(names, "Agent") || !slices.Contains(names, "mcp__ollim__note") {
			t.Errorf("request %d: tools %v", i, names)
		}
	}
	price, _ := model.Known().Resolve("haiku").Cost(model.Tokens{In: 1_000_000})
	if got.Usage.In < 1_000_000 || got.Cost < price {
		t.Errorf("usage %+v, cost %v", got.Usage, got.Cost)
	}
	for _, e := range w.events {
		if (e.Type == runlog.Text || e.Type == runlog.Thinking) && e.Text != "done" {
			t.Errorf("%s %q is shown as the agent's", e.Type, e.Text)
		}
	}
	if result := w.result("Agent"); result.IsError || !strings.Contains(result.Text, "It is PUBLIC.") {
		t.Errorf("result %+v", result)
	}
}

// TestSubagentBounds: no subagent but the approved one, and none with tools that the run has not. The program's tests of
// subagents show the same.
func TestSubagentBounds(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	a := looker()
	a.Tools = []string{"Read", "Write", "WebFetch", "Task"}
	w.api.On(bySubagent, func(q anthropicapi.Request) anthropicapi.Reply {
		if names := q.ToolNames(); !slices.Equal(names, []string{"Read", "Agent"}) && !slices.Equal(names, []string{"Agent", "Read"}) {
			t.Errorf("the subagent has %v", names)
		}
		switch {
		case len(q.ToolResults()) == 0:
			return anthropicapi.Use("Write", map[string]any{"file_path": filepath.Join(w.root, "new.md"), "content": "x"})
		case !q.Has(`"general-purpose"`):
			return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{delegate("general-purpose")}}
		}
		return anthropicapi.Reply{Text: "no more"}
	})
	w.api.Reply(
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{delegate("general-purpose")}},
		anthropicapi.Use("Agent", map[string]any{"description": "look", "prompt": "Look."}),
		anthropicapi.Use("Agent", map[string]any{"description": "look", "prompt": "Look.", "subagent_type": "looker", "isolation": "worktree"}),
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{delegate("looker")}},
		anthropicapi.Reply{Text: "done"},
	)
	if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{Subagent: a}}, "Read(./**.md)", "Task(looker)"); err != nil {
		t.Fatal(err)
	}
	allowed := 0
	for _, v := range w.verdicts() {
		t.Log(v.Agent, v.Tool, v.Allowed, v.Reason)
		if v.Allowed {
			allowed++
		}
	}
	if n := len(w.verdicts()); n != 5 || allowed != 1 {
		t.Errorf("%d of %d uses are allowed, want 1 of 5", allowed, n)
	}
	if _, err := os.Stat(filepath.Join(w.root, "new.md")); err == nil {
		t.Error("a file was written")
	}
}

// TestSubagentNotTaken: the command drops one that it does not like (2.1.197) or refuses it (2.1.330); the run ends before the model is
// asked.
func TestSubagentNotTaken(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	hold := make(chan struct{})
	defer time.AfterFunc(patience/2, func() { close(hold) }).Stop()
	w.api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Hold: hold} })
	a := looker()
	a.Description = ""
	if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{Subagent: a}}, "Task(looker)"); err == nil || !strings.Contains(err.Error(), "looker") {
		t.Error(err)
	}
}

// TestAgentWithoutTools: a list that is empty is not the same as none, which stands for everything that the run has.
func TestAgentWithoutTools(t *testing.T) {
	for want, tools := range map[string][]string{
		`{"critic":{"description":"d","prompt":"p"}}`:            nil,
		`{"critic":{"description":"d","prompt":"p","tools":[]}}`: {},
	} {
		flags, err := offered(&engine.Subagent{Name: "critic", Description: "d", Prompt: "p", Tools: tools})
		if err != nil || len(flags) != 2 || flags[1] != want {
			t.Errorf("%q %v, want %s", flags, err, want)
		}
	}
}
