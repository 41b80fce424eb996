package policy

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// kind is what a tool does, as far as its input is judged.
type kind string

const (
	unknown    kind = ""
	reading    kind = "reading"
	writing    kind = "writing"
	searching  kind = "searching"
	delegating kind = "delegating"
)

// tools has the kind of each tool ("other" is judged by name or by a scope of its own), and the fields of its input with what the
// name of the type in Go begins with (string, json.Number, bool, []any); ! marks a required one, and the value of some is always
// false. A tool without fields takes any object.
const tools = `Read reading file_path:s! offset:j limit:j pages:s
Write writing file_path:s! content:s!
Edit writing file_path:s! old_string:s! new_string:s! replace_all:b
MultiEdit writing file_path:s! edits:[!
NotebookEdit writing notebook_path:s! new_source:s! cell_id:s cell_type:s edit_mode:s
Glob searching pattern:s! path:s
Grep searching pattern:s! path:s glob:s type:s output_mode:s -A:j -B:j -C:j context:j -n:b -i:b -o:b head_limit:j offset:j multiline:b
Task delegating description:s prompt:s! subagent_type:s model:s name:s run_in_background:false
Agent delegating description:s prompt:s! subagent_type:s model:s name:s run_in_background:false
Bash other command:s! description:s timeout:j run_in_background:false dangerouslyDisableSandbox:false
WebFetch other url:s! prompt:s
WebSearch other query:s! allowed_domains:[ blocked_domains:[
Skill other skill:s! args:s
TodoWrite other`

// toolOf returns the kind of a tool and the fields of its input.
func toolOf(tool string) (kind, []string) {
	for line := range strings.Lines(tools) {
		if words := strings.Fields(line); words[0] == tool {
			return kind(words[1]), words[2:]
		}
	}
	return unknown, nil
}

func kindOf(tool string) kind {
	kind, _ := toolOf(tool)
	return kind
}

// Edits reports whether the tool writes files.
func Edits(tool string) bool { return kindOf(tool) == writing }

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
	tools := []string{"Read", "Glob", "Grep"}
	if root.Writable {
		tools = append(tools, "Write", "Edit")
	}
	return below(root, tools...)
}

// below returns a pattern of each tool for all that is in a root.
func below(root Root, tools ...string) (patterns []string, err error) {
	if !filepath.IsAbs(root.Dir) {
		return nil, errors.New("a root is an absolute path")
	}
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

// List splits a list of patterns as Claude Code does, at commas and blanks outside of parentheses. Bash(git:*), which is its older
// form, becomes Bash(git *).
func List(text string) []string {
	depth := 0
	list := strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(", \t\n", r)
	})
	for i, pattern := range list {
		if begin, found := strings.CutSuffix(pattern, ":*)"); found && strings.HasPrefix(pattern, "Bash(") {
			list[i] = begin + " *)"
		}
	}
	return list
}

// IsTool reports whether a text begins with the name of a tool, as patterns do.
func IsTool(pattern string) bool {
	tool, _, _ := strings.Cut(pattern, "(")
	return kindOf(tool) != unknown || strings.HasPrefix(tool, "mcp__")
}

// Grant returns the pattern of a tool in a list of Claude Code, where a tool that writes needs no scope: it may write in the working
// directory and in the other roots.
func Grant(pattern string, roots []Root) (patterns []string, err error) {
	if !Edits(pattern) {
		return []string{pattern}, Judge(pattern, roots...)
	}
	for _, root := range roots {
		scoped, err := below(root, pattern)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, scoped...)
	}
	return patterns, nil
}

// Servers returns the MCP servers, besides ollim's own, whose tools the patterns name, sorted. What is no pattern is left out.
func Servers(patterns []string) (names []string) {
	for _, text := range patterns {
		if p, err := Parse(text); err == nil && p.server != "" && p.server != OwnServer {
			names = append(names, p.server)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OfServers returns the patterns that name tools of MCP servers besides ollim's own, sorted.
func OfServers(patterns ...string) []string {
	list := slices.DeleteFunc(slices.Clone(patterns), func(text string) bool { return len(Servers([]string{text})) == 0 })
	slices.Sort(list)
	return slices.Compact(list)
}
