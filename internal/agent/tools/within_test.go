package tools_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestWithin: a subagent may use what both its own list and the run allow.
func TestWithin(t *testing.T) {
	d := newFixture(t, talks())
	d.Run.Tools = []string{"Read(./**.md)", "Bash(git log *)", "mcp__notes__*", "mcp__ollim__list_reminders", "mcp__ollim__add_reminder"}
	sub := d.Within([]string{"Read(./notes/**)", "Bash", "mcp__notes__add", "mcp__ollim__list_reminders", "Write"})
	for i, test := range []struct {
		tool, input string
		refused     bool
	}{
		{"Read", `{"file_path":"notes/a.md"}`, false}, {"Read", `{"file_path":"a.md"}`, true}, {"Bash", `{"command":"git log"}`, false},
		{"Bash", `{"command":"date"}`, true}, {"mcp__notes__add", `{}`, false}, {"mcp__notes__wipe", `{}`, true},
		{"Write", `{"file_path":"a.md","content":""}`, true}, {"Glob", `{"pattern":"*.md"}`, true},
	} {
		reason, err := sub.Verdict(t.Context(), test.tool, string(rune('a'+i)), json.RawMessage(test.input))
		if err != nil || (reason != "") != test.refused {
			t.Errorf("%s %s: %q, %v", test.tool, test.input, reason, err)
		}
	}
	var names []string
	for _, tool := range sub.List() {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "list_reminders" {
		t.Errorf("offered %s", got)
	}
	if all := d.Within(nil).List(); len(all) < 2 {
		t.Errorf("without a list it has %d tools", len(all))
	}
}

// TestHas: a tool of a server may be used if a pattern names it, or the owner has allowed a use.
func TestHas(t *testing.T) {
	d := newFixture(t, talks())
	d.Run.Tools = []string{"mcp__notes__add"}
	for tool, want := range map[string]bool{"mcp__notes__add": true, "mcp__notes__wipe": false} {
		if got, err := d.Has(tool); got != want || err != nil {
			t.Errorf("%s: %v, %v", tool, got, err)
		}
	}
}
