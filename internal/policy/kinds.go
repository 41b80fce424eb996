package policy

import (
	"errors"
	"path/filepath"
)

// kind is what a tool does, as far as its input is judged.
type kind int

const (
	unknown kind = iota
	reading
	writing
	searching
	delegating
	other // known, and judged by name or by a scope of its own
)

func kindOf(tool string) kind {
	switch tool {
	case "Read":
		return reading
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return writing
	case "Glob", "Grep":
		return searching
	case "Task", "Agent":
		return delegating
	case "Bash", "WebFetch", "WebSearch", "Skill", "TodoWrite":
		return other
	}
	return unknown
}

// DefaultMain is what the main conversation and interactive forks may use.
func DefaultMain() []string {
	return []string{
		"mcp__ollim__*",
		"Read(./**.md)", "Write(./**.md)", "Edit(./**.md)", "Glob(./**.md)", "Grep(./**.md)",
		"WebFetch", "WebSearch", "Task", "Skill", "Bash(ollim *)",
	}
}

// DefaultBackground is what a background run may use before its job adds to it. The gated agent tools (ping, embed, file,
// report, follow-up) follow the job's flags and are not here.
func DefaultBackground() []string {
	return []string{
		"Read(./**.md)", "Glob(./**.md)", "Grep(./**.md)", "Bash(ollim help)", "Bash(ollim tasks *)",
		"mcp__ollim__add_reminder", "mcp__ollim__list_reminders", "mcp__ollim__cancel_reminder",
	}
}

// DefaultAsk is what a question at a shell may use before its owner adds to it: it looks around where it was asked.
func DefaultAsk() []string { return []string{"Read(./**)", "Glob(./**)", "Grep(./**)"} }

// OfDir are the patterns that a job's dirs entry adds: reading below it, and writing if it is writable. The error is Judge's, for
// a directory whose name a pattern cannot hold.
func OfDir(root Root) ([]string, error) {
	if !filepath.IsAbs(root.Dir) {
		return nil, errors.New("a root is an absolute path")
	}
	tools := []string{"Read", "Glob", "Grep"}
	if root.Writable {
		tools = append(tools, "Write", "Edit")
	}
	var patterns []string
	for _, tool := range tools {
		pattern := tool + "(" + filepath.Join(root.Dir, "**") + ")"
		if err := Judge(pattern, root); err != nil {
			return nil, err
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// OfSkill is the pattern that a job's skill adds.
func OfSkill(name string) string { return "Skill(" + name + " *)" }
