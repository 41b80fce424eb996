package policy_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// TestOnce: the owner can allow what some pattern could allow, by a pattern that allows little else.
func TestOnce(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Read(./**.md)", "Glob(./notes/**.md)", "Bash(ollim *)")
	for _, tc := range []struct{ tool, input, want string }{
		{"Read", `{"file_path": "notes/b.txt"}`, "Read(./notes/b.txt)"},
		{"Read", `{"file_path": "` + filepath.Join(h.dir, "notes/b.txt") + `"}`, "Read(./notes/b.txt)"},
		{"Read", `{"file_path": "in/b.txt"}`, "Read(./notes/b.txt)"},
		{"Read", `{"file_path": "` + filepath.Join(h.read, "l.go") + `"}`, "Read(" + filepath.Join(h.read, "l.go") + ")"},
		{"Write", `{"file_path": "new.txt", "content": "x"}`, "Write(./new.txt)"},
		{"Edit", `{"file_path": "notes/b.txt", "old_string": "a", "new_string": "b"}`, "Edit(./notes/b.txt)"},
		{"Glob", `{"pattern": "**/*.txt"}`, "Glob(./**)"},
		{"Bash", `{"command": "git status"}`, "Bash(git status)"},
		{"Bash", `{"command": "cat notes/a.md"}`, "Bash(cat notes/a.md)"},
		{"WebFetch", `{"url": "https://example.org/x"}`, "WebFetch"},
		{"mcp__files__read", `{"path": "x"}`, "mcp__files__read"},

		{"Read", `{"file_path": "config.yaml"}`, ""},
		{"Read", `{"file_path": "state/runs/1/run.json"}`, ""},
		{"Read", `{"file_path": "cfg"}`, ""},
		{"Read", `{"file_path": "link/o.md"}`, ""},
		{"Read", `{"file_path": "/etc/passwd"}`, ""},
		{"Write", `{"file_path": "gates/g", "content": "x"}`, ""},
		{"Write", `{"file_path": "` + filepath.Join(h.read, "l.go") + `", "content": "x"}`, ""},
		{"Bash", `{"command": "git status; rm x"}`, ""},
		{"Bash", `{"command": "cat state/x.md"}`, ""},
		{"Bash", `{"command": "sh -c ls"}`, ""},
		{"Bash", `{"command": "ls notes"}`, ""},
		{"Bash", `{"command": "ollim approve --all"}`, ""},
		{"Nothing", `{}`, ""},
		{"Read", `{"file_path": 1}`, ""},
	} {
		pattern, ok := p.Once(tc.tool, json.RawMessage(tc.input))
		if !ok {
			pattern = policy.Pattern{}
		}
		if got := pattern.String(); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.tool, tc.input, got, tc.want)
		}
	}
}

func TestCheckMode(t *testing.T) {
	for _, mode := range []string{"dontAsk", "default", "acceptEdits"} {
		if err := policy.CheckMode(mode); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	for _, mode := range []string{"", "dontask", "bypassPermissions", "plan"} {
		if policy.CheckMode(mode) == nil {
			t.Errorf("%q is accepted", mode)
		}
	}
}
