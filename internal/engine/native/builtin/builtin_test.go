package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
)

func TestList(t *testing.T) {
	b := &Box{}
	var names []string
	for _, tool := range b.List([]string{"WebFetch", "Bash", "Task", "Read", "Grep", "Glob", "Edit", "Write", "Skill"}) {
		names = append(names, tool.Name)
		if tool.Description == "" || len(tool.Description) > 900 {
			t.Errorf("%s: a description of %d bytes", tool.Name, len(tool.Description))
		}
	}
	if want := []string{"Read", "Write", "Edit", "Glob", "Grep", "Bash", "WebFetch"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	if got := b.List([]string{"Glob", "Read"}); len(got) != 2 || got[0].Name != "Read" {
		t.Errorf("%v", got)
	}
	for _, tool := range b.List(names) {
		want := engine.ReadsOnly
		switch tool.Name {
		case "Write", "Edit":
			want = engine.Changes
		case "Bash":
			want = engine.Starts
		}
		if tool.Effect != want {
			t.Errorf("%s: effect %d, want %d", tool.Name, tool.Effect, want)
		}
	}
}

// What a schema offers is what the policy reads: a sample of every field, and only the required ones.
func TestSchemasAreWhatThePolicyReads(t *testing.T) {
	for _, tool := range tools() {
		var schema struct {
			Properties map[string]struct{ Type string }
			Required   []string
		}
		if err := json.Unmarshal([]byte(tool.schema), &schema); err != nil {
			t.Fatalf("%s: %v", tool.name, err)
		}
		samples := map[string]any{"string": "x", "integer": 1, "boolean": false}
		all, least := map[string]any{}, map[string]any{}
		for name, p := range schema.Properties {
			all[name] = samples[p.Type]
		}
		for _, name := range schema.Required {
			least[name] = all[name]
		}
		for _, in := range []map[string]any{all, least} {
			text, _ := json.Marshal(in)
			if err := policy.CheckInput(tool.name, text); err != nil {
				t.Errorf("%s %s: %v", tool.name, text, err)
			}
		}
		for _, name := range schema.Required {
			value := least[name]
			delete(least, name)
			text, _ := json.Marshal(least)
			if policy.CheckInput(tool.name, text) == nil {
				t.Errorf("%s: %s is not required by the policy", tool.name, name)
			}
			least[name] = value
		}
	}
}

func TestBadInput(t *testing.T) {
	h := newFixture(t)
	for _, c := range [][2]string{
		{"Read", `{}`}, {"Read", `[]`}, {"Read", `{"file_path":"top.md","x":1}`}, {"Read", `{"file_path":"top.md","FILE_PATH":"notes/a.md"}`},
		{"Read", `{"file_path":"top.md","file_path":"notes/a.md"}`}, {"Read", `{"file_path":"top.md","offset":-1}`},
		{"Read", `{"file_path":"top.md","limit":1.5}`}, {"Read", `{"file_path":"top.md","limit":1e300}`}, {"Read", `{"file_path":"top.md","limit":"3"}`},
		{"Read", `{"file_path":"top.md","pages":"1-3"}`}, {"Read", `{"file_path":null}`}, {"Read", `{"file_path":"top.md"} x`},
		{"Bash", `{"command":"echo x","run_in_background":true}`}, {"Grep", `{"pattern":"["}`}, {"Grep", `{"pattern":"x","type":"nope"}`},
		{"Grep", `{"pattern":"x","output_mode":"all"}`}, {"Grep", `{"pattern":"x","glob":"a/*.md"}`}, {"Glob", `{"pattern":"../*"}`},
		{"Glob", `{"pattern":"/etc/*"}`}, {"Glob", `{"pattern":"*.{md,txt}"}`}, {"Task", `{}`}, {"", `{}`},
	} {
		r := h.box.Call(t.Context(), c[0], json.RawMessage(c[1]))
		if !r.IsError || r.Text == "" || strings.Contains(r.Text, "\n") {
			t.Errorf("%s %s: %+v", c[0], c[1], r)
		}
	}
	if got := h.good(t, "Read", "file_path", "notes/a.md", "offset", json.Number("2.0"), "limit", json.Number("1e0")); got != "     2\tbeta\n(the file continues; read it from offset 3)" {
		t.Errorf("%q", got)
	}
}

func TestStopped(t *testing.T) {
	h := newFixture(t)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("the owner said stop"))
	for _, tool := range tools() {
		in := object(t, "file_path", "top.md", "content", "x", "old_string", "top", "new_string", "x", "pattern", "top", "command", "echo x", "url", "https://example.com")
		var all map[string]any
		_ = json.Unmarshal(in, &all)
		var schema struct{ Required []string }
		_ = json.Unmarshal([]byte(tool.schema), &schema)
		kv := []any{}
		for _, name := range schema.Required {
			kv = append(kv, name, all[name])
		}
		if r := h.box.Call(ctx, tool.name, object(t, kv...)); !r.IsError || !strings.Contains(r.Text, "the owner said stop") {
			t.Errorf("%s: %+v", tool.name, r)
		}
	}
	if got := h.get("data/top.md"); got != "top\n" {
		t.Errorf("written all the same: %q", got)
	}
}

// A tool that looks comes back when it is stopped, even if its work does not.
func TestSoon(t *testing.T) {
	ctx, stop := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("late"))
	defer stop()
	end := make(chan struct{})
	defer close(end)
	if _, err := soon(ctx, func(context.Context) (string, error) { <-end; return "", nil }); err == nil || err.Error() != "late" {
		t.Error(err)
	}
	for range 200 { // the end of the work is not taken for the end of the context
		if text, err := soon(t.Context(), func(context.Context) (string, error) { return "x", nil }); text != "x" || err != nil {
			t.Fatal(text, err)
		}
	}
}

func TestClean(t *testing.T) {
	if got := clean("a\x00b\xffc\u00e9"); got != "a\ufffdb\ufffdc\u00e9" {
		t.Errorf("%q", got)
	}
}
