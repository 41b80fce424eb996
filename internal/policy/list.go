package policy

import (
	"slices"
	"strings"
)

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
