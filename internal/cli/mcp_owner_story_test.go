package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/engine"
)

// owned is a toolkit of the owner's, whose calls a test makes.
type owned struct {
	t *testing.T
	k *ownerToolkit
}

func (w *world) owned() owned { return owned{w.t, newOwnerTools(w.deps(nil, nil, nil))} }

// ok calls a tool, which must not fail.
func (o owned) ok(name, input string) string {
	o.t.Helper()
	r := o.k.Call(o.t.Context(), name, json.RawMessage(input))
	if r.IsError {
		o.t.Fatalf("%s %s: %s", name, input, r.Text)
	}
	return r.Text
}

// TestOwnerTools: outside every run ollim mcp serve has the owner's tools, each with its command's help, and none about the caller's
// own conversation.
func TestOwnerTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"status","arguments":{}}}
`
	r := w.pipe(lines, "mcp", "serve")
	if r.status != 0 || !strings.Contains(r.out, `"id":3,"result":{"content":[{"type":"text","text":"{\"`) {
		t.Fatalf("%+v", r)
	}
	tools := newOwnerTools(w.deps(nil, nil, nil)).List()
	if listed := w.must("mcp", "tools"); strings.Count(listed, "\n") != len(tools) {
		t.Errorf("listed: %s", listed)
	}
	for _, tool := range tools {
		var schema map[string]any
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema["type"] != "object" {
			t.Errorf("%s: %s", tool.Name, tool.Schema)
		}
		if !strings.Contains(r.out, `"name":"`+tool.Name+`"`) || strings.HasPrefix(tool.Description, "Run a personal AI agent") {
			t.Errorf("%s: %s", tool.Name, tool.Description)
		}
	}
	want := map[string]engine.Effect{
		"delete_task": engine.Deletes, "stop_run": engine.Deletes, "fire": engine.Sends, "ask": engine.Sends, "answer": engine.Sends,
		"ping_user": engine.Sends, "discord_embed": engine.Sends, "send_file": engine.Sends,
	}
	for _, tool := range tools {
		if tool.Effect != want[tool.Name] {
			t.Errorf("%s: effect %d, want %d", tool.Name, tool.Effect, want[tool.Name])
		}
		delete(want, tool.Name)
	}
	if len(want) > 0 {
		t.Errorf("not offered: %v", want)
	}
	for _, name := range []string{"compact_session", "follow_up_chain", "ask_owner", "enter_fork", "exit_fork", "save_context"} {
		if strings.Contains(r.out, `"`+name+`"`) {
			t.Errorf("%s is offered", name)
		}
	}
}

// TestOwnerToolsDoWhatCommandsDo: the result of a tool is what its command prints, and what it changes is changed.
func TestOwnerToolsDoWhatCommandsDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: the answer\n")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look around.")
	o := w.owned()
	for _, step := range []struct{ tool, input, want string }{
		{"list_routines", `{}`, `"name":"daily"`},
		{"report_updates", `{"message":"-- oil broke 75"}`, "done"},
		{"list_updates", `{}`, "-- oil broke 75"},
		{"list_updates", `{"all":true}`, `"became":"pending"`},
		{"add_task", `{"text":"--buy milk","priority":"b","due":"2026-03-09"}`, "1"},
		{"list_tasks", `{"words":["milk"],"due":true}`, `"due":"2026-03-09"`},
		{"edit_task", `{"task":"1","text":"buy oat milk"}`, "done"},
		{"complete_task", `{"task":1}`, "done"},
		{"list_tasks", `{"all":true}`, "oat milk"},
		{"delete_task", `{"task":"1"}`, "done"},
		{"remind", `{"when":"45m","message":"take the pizza out"}`, "2026-03-02"},
		{"add_reminder", `{"message":"look again","in":"2h"}`, "2026-03-02"},
		{"list_reminders", `{}`, "take the pizza out"},
		{"budget", `{}`, `"capacity":5`},
		{"fire", `{"job":"daily"}`, `"outcome":"ok"`},
		{"list_runs", `{"job":"daily","number":1}`, "\tok\t"},
		{"show_run", `{"run":"last"}`, `"text": "the answer"`},
		{"run_log", `{"run":"daily"}`, "the answer"},
		{"ask", `{"question":"what now?"}`, "the answer"},
		{"update_names", `{"user_name":"Kim"}`, ""},
		{"search_docs", `{"query":"ping budget"}`, "budget"},
		{"ping_user", `{"message":"hello"}`, "done"},
	} {
		if got := o.ok(step.tool, step.input); !strings.Contains(got, step.want) {
			t.Errorf("%s %s: %q, want %q", step.tool, step.input, got, step.want)
		}
	}
	if got := w.must("names"); !strings.Contains(got, "Kim") {
		t.Errorf("names: %s", got)
	}
	if got := w.must("update", "list"); !strings.Contains(got, "hello") { // no delivery is configured
		t.Errorf("updates: %s", got)
	}
	id, _, _ := strings.Cut(w.must("reminder", "list"), "\t")
	o.ok("cancel_reminder", `{"id":"`+id+`"}`)
	if got := w.must("reminder", "list"); strings.Contains(got, id) {
		t.Errorf("reminders: %s", got)
	}
}

// TestOwnerToolsRefuse: what a command refuses is an error with its words, and so are arguments that make no sense.
func TestOwnerToolsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.owned()
	for _, step := range []struct{ tool, input, want string }{
		{"nothing", `{}`, `no tool "nothing"`},
		{"fire", `{"job":"dayly"}`, `ollim: fire: dayly: no job "dayly"`},
		{"fire", `{"job":"--all"}`, `ollim: fire: --all: no job "--all"`},
		{"fire", `{}`, "bad arguments: job is missing"},
		{"fire", `{"job":{"a":1}}`, "bad arguments: job: want a text, a number, true or false"},
		{"fire", `{"job":null}`, "bad arguments: job: want a text, a number, true or false"},
		{"fire", `{"job":["a"]}`, "bad arguments: job: want a list only where the schema has one"},
		{"fire", `[]`, "bad arguments: want a JSON object"},
		{"list_tasks", `{"words":"milk"}`, "bad arguments: words: want a list only where the schema has one"},
		{"add_task", `{"text":"x","colour":"red"}`, `bad arguments: unknown property "colour"`},
		{"add_task", `{"text":"x","due":"soon"}`, `ollim: task add: --due "soon": want YYYY-MM-DD, today or tomorrow`},
		{"add_reminder", `{"message":"x"}`, "ollim: reminder add: want one time: give either --in or --at"},
		{"discord_embed", `{"title":"x","critical":true}`, `ollim: ping: --embed: unknown field "critical"`},
		{"answer", `{"run":"last","text":"y"}`, `ollim: answer: `},
		{"show_run", `{"run":"last"}`, `ollim: run show: last: `},
	} {
		r := o.k.Call(t.Context(), step.tool, json.RawMessage(step.input))
		if !r.IsError || !strings.HasPrefix(r.Text, step.want) {
			t.Errorf("%s %s: %v, %q, want %q", step.tool, step.input, r.IsError, r.Text, step.want)
		}
	}
	if runs := w.runs(); len(runs) != 0 {
		t.Errorf("%d runs", len(runs))
	}
}

// TestOwnerHasNoGates: messages of the owner's client take nothing from the ping budget, are not limited to one, and reach the owner.
func TestOwnerHasNoGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("config", "set", "delivery.command", "sh", "-c", "cat >>received; echo >>received")
	w.must("budget", "set", "--capacity", "0")
	w.write("note.txt", "x")
	file := filepath.Join(w.dir, "note.txt")
	o := w.owned()
	o.ok("ping_user", `{"message":"one"}`)
	o.ok("ping_user", `{"message":"two"}`)
	o.ok("discord_embed", `{"title":"three","fields":[{"name":"a","value":"b"}]}`)
	o.ok("send_file", `{"path":"`+file+`","message":"four"}`)
	for _, want := range []string{"one", "two", "three", "four"} {
		if got := w.read("received"); !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// TestOwnerAnswers: a question that a run asks is answered by a tool, and the run continues in a process of its own.
func TestOwnerAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - tool: ask_owner\n      input: {question: buy or sell}\n    - text: asked\n")
	w.must("routine", "add", "trade", "--cron", "0 9 * * *", "--background", "Trade.")
	w.must("config", "set", "delivery.command", "true")
	o := w.owned()
	if got := o.ok("fire", `{"job":"trade"}`); !strings.Contains(got, `"outcome":"waiting"`) {
		t.Fatal(got)
	}
	if got := o.ok("status", `{}`); !strings.Contains(got, "buy or sell") {
		t.Errorf("status: %s", got)
	}
	w.must("pause") // so that no other process continues the run
	o.ok("answer", `{"run":"trade","text":"sell"}`)
	if got := o.ok("status", `{}`); !strings.Contains(got, `"answered":true`) {
		t.Errorf("status: %s", got)
	}
}

// TestOwnerCallsAtOnce: calls that run at the same time do not mix their input, output or stores.
func TestOwnerCallsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.owned()
	var all sync.WaitGroup
	for _, word := range strings.Fields("a b c d e f g h i j k l") {
		all.Go(func() {
			if r := o.k.Call(t.Context(), "add_task", json.RawMessage(`{"text":"task-`+word+`"}`)); r.IsError {
				t.Error(r.Text)
			}
			if r := o.k.Call(t.Context(), "list_tasks", json.RawMessage(`{"words":["task-`+word+`"]}`)); strings.Count(r.Text, "number") != 1 || !strings.Contains(r.Text, "task-"+word) {
				t.Errorf("%s: %s", word, r.Text)
			}
		})
	}
	all.Wait()
}
