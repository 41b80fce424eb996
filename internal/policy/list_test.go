package policy

import (
	"slices"
	"testing"
)

func TestList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                              {},
		"Read,Edit":                     {"Read", "Edit"},
		" Read ,\tEdit ":                {"Read", "Edit"},
		"Bash(git log *) Read":          {"Bash(git log *)", "Read"},
		"Bash(echo a, (b) c),Glob":      {"Bash(echo a, (b) c)", "Glob"},
		"Bash(git log:*),mcp__a__*":     {"Bash(git log *)", "mcp__a__*"},
		"Bash(ls,Read":                  {"Bash(ls,Read"}, // which is no pattern
		"WebFetch(domain:a.example) Or": {"WebFetch(domain:a.example)", "Or"},
	} {
		if got := List(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestGrant(t *testing.T) {
	t.Parallel()
	roots := []Root{{Dir: "/a", Writable: true}, {Dir: "/b", Writable: true}}
	for pattern, want := range map[string][]string{
		"Read":           {"Read"},
		"Edit":           {"Edit(/a/**)", "Edit(/b/**)"},
		"Write":          {"Write(/a/**)", "Write(/b/**)"},
		"Edit(x/*.md)":   {"Edit(x/*.md)"},
		"Edit(/b/c/**)":  {"Edit(/b/c/**)"},
		"Edit(/c/**)":    nil,
		"Edit()":         nil,
		"Bash":           nil,
		"Nosuch":         nil,
		"mcp__server__t": {"mcp__server__t"},
	} {
		got, err := Grant(pattern, roots)
		if want == nil && err == nil || want != nil && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}
	if _, err := Grant("Edit", []Root{{Dir: "/", Writable: true}}); err == nil {
		t.Error("Edit may write anywhere")
	}
}

func TestIsTool(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Read": true, "Bash(git log *)": true, "mcp__a": true, "Edit(": true, "read": false, "main.go": false, "": false, "(Read)": false,
	} {
		if IsTool(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
