package acp

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestForms: each form in which agents report uses, as codex-acp 2.6.0 and gemini 0.61.0 send them. The text of a command, which the model
// chooses, is never the name of a tool.
func TestForms(t *testing.T) {
	servers := []string{"ollim", "fk"}
	for name, c := range map[string]struct {
		form    Form
		updates []string
		want    string
	}{
		"codex, a command": {ByInput, []string{`{"title": "ls", "kind": "execute", "rawInput": {"command": "ls", "cwd": "/r"}}`}, `Bash [{"command":"ls"}] true`},
		"codex, a command that reads": {ByInput, []string{`{"title": "Read f", "kind": "read", "rawInput": {"command": "cat f", "cwd": "/r"}}`},
			`Bash [{"command":"cat f"}] true`},
		"codex, a command like a tool": {ByInput, []string{`{"title": "mcp.fk.ping", "kind": "execute", "rawInput": {"command": "mcp.fk.ping", "cwd": "/r"}}`},
			`Bash [{"command":"mcp.fk.ping"}] true`},
		"codex, a command in another directory": {ByInput, []string{`{"kind": "execute", "rawInput": {"command": "./ok.sh", "cwd": "/r/in"}}`},
			`Bash [{"command":"./ok.sh","directory":"/r/in"}] true`},
		"codex, words of a command": {ByInput, []string{`{"kind": "execute", "rawInput": {"command": ["rm", "a b", "-f"], "cwd": "/r"}}`},
			`Bash [{"command":"rm 'a b' -f"}] true`},
		"codex, a tool": {ByInput, []string{`{"title": "mcp.fk.ping", "kind": "execute", "rawInput": {"server": "fk", "tool": "ping", "arguments": {"a": 1}}}`, `{"kind": "execute"}`},
			`mcp__fk__ping [{"a":1}] true`},
		"codex, a tool before its input": {ByInput, []string{`{"kind": "execute"}`}, `Bash [{"command":""}] false`},
		"codex, an unknown server": {ByInput, []string{`{"kind": "execute", "rawInput": {"server": "x", "tool": "ping"}}`},
			`Bash [{"command":""}] false`},
		"codex, an edit": {ByInput, []string{`{"title": "Edit files", "kind": "edit", "locations": [{"path": "/r/f"}]}`},
			`Edit [{"file_path":"/r/f","new_string":"","old_string":""}] true`},
		"gemini, a command": {ByTitle, []string{`{"title": "ls", "kind": "execute", "content": [{"type": "content", "content": {"type": "text", "text": "[current working directory /r] (d)"}}]}`},
			`Bash [{"command":"ls"}] true`},
		"gemini, a command in another directory": {ByTitle, []string{`{"title": "ls", "kind": "execute", "content": [{"type": "content", "content": {"type": "text", "text": "[in in] (d)"}}]}`},
			`Bash [{"command":"ls","directory":"[in in] (d)"}] true`},
		"gemini, a command like a tool": {ByTitle, []string{`{"title": "ping (fk MCP Server)", "kind": "execute"}`}, `Bash [{"command":"ping (fk MCP Server)"}] true`},
		"gemini, a tool": {ByTitle, []string{`{"title": "ping (fk MCP Server)", "kind": "other", "content": [{"type": "content", "content": {"type": "text", "text": "{\"a\":1}"}}]}`},
			`mcp__fk__ping [{"a":1}] true`},
		"gemini, arguments of another form": {ByTitle, []string{`{"title": "ping (fk MCP Server)", "kind": "other", "content": [{"type": "content", "content": {"type": "text", "text": "x"}}]}`},
			`mcp__fk__ping [{}] false`},
		"gemini, another tool": {ByTitle, []string{`{"title": "mcp__fk__ping", "kind": "other"}`}, `unknown [{}] true`},
		"gemini, a file":       {ByTitle, []string{`{"title": "f", "kind": "read", "locations": [{"path": "/r/f"}]}`}, `Read [{"file_path":"/r/f"}] true`},
		"opencode, a file through a link": {ByName, []string{`{"title": "read", "kind": "read", "rawInput": {"filePath": "notes/../x.md"}}`},
			`Read [{"file_path":"/r/notes/../x.md"}] true`},
		"opencode, a command elsewhere": {ByName, []string{`{"title": "bash", "kind": "execute", "rawInput": {"command": "./ok.sh", "workdir": "in"}}`},
			`Bash [{"command":"./ok.sh","directory":"/r/in"}] true`},
		"opencode, a tool without arguments": {ByName, []string{`{"title": "fk_list", "kind": "other", "status": "pending", "rawInput": {}}`,
			`{"title": "fk_list", "kind": "other", "status": "in_progress", "rawInput": {}}`}, `mcp__fk__list [{}] true`},
		"opencode, before its input": {ByName, []string{`{"title": "fk_list", "kind": "other", "status": "pending", "rawInput": {}}`}, `mcp__fk__list [{}] false`},
	} {
		t.Run(name, func(t *testing.T) {
			u := &use{}
			for _, text := range c.updates {
				var up update
				if err := json.Unmarshal([]byte(text), &up); err != nil {
					t.Fatal(err)
				}
				u.learn(up)
			}
			n, ok := Profile{Form: c.form, Between: "_"}.name(u, "/r", servers)
			inputs, err := json.Marshal(n.inputs)
			if got := fmt.Sprint(n.tool, " ", string(inputs), " ", ok); err != nil || got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
