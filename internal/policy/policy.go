package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Root is a directory that file tools may use.
type Root struct {
	Dir      string // absolute
	Writable bool
}

// Policy is what one run may do. Its zero value allows nothing.
type Policy struct {
	Allow []Pattern
	// Roots are the directories that file tools stay in. The first is the request's working directory, which paths are relative to.
	Roots []Root
	// Protected are absolute paths, of files or directories, that no tool reaches, whether they exist or not.
	Protected []string
	// Ollim says what the agent may do with the commands of ollim; nil: nothing.
	Ollim OllimAccess
	// Sealed says that the kernel holds the programs that the agent starts to what they may reach. Then the table of programs is in
	// force only for services.
	Sealed bool
	// SearchHides says that the engine itself leaves protected places out of what Glob and Grep find in the working directory
	// (Claude Code does, for paths that its settings deny to Read). Then a search may begin above them.
	SearchHides bool
}

// Verdict is the answer to one use of a tool.
type Verdict struct {
	Allow  bool
	Reason string  // one line; of a refusal: why, and how to ask instead
	By     Pattern // that allows it
}

// Decide reports whether the tool may be used with this input, a JSON object as the engine got it from the model.
func (p Policy) Decide(tool string, input json.RawMessage) Verdict {
	by, err := p.decide(tool, input)
	if err != nil {
		return Verdict{Reason: plaintext.Short(plaintext.Line(fmt.Sprintf("%s: %v", quoteless(tool), err)), 1000)}
	}
	return Verdict{Allow: true, Reason: "allowed by " + by.text, By: by}
}

// decide returns the pattern that allows the use.
func (p Policy) decide(tool string, input json.RawMessage) (Pattern, error) {
	patterns := p.of(tool)
	if len(patterns) == 0 {
		return Pattern{}, fmt.Errorf("this tool is not allowed here")
	}
	in, err := readInput(tool, input)
	if err != nil {
		return Pattern{}, err
	}
	switch kind := kindOf(tool); {
	case kind == reading, kind == writing:
		return p.decideFile(tool, in, patterns)
	case kind == searching:
		return p.decideSearch(tool, in, patterns)
	case kind == delegating:
		return decideTask(in, patterns)
	case tool == "Bash":
		return p.decideBash(in, patterns)
	case tool == "Skill":
		return decideSkill(in, patterns)
	case tool == "WebFetch":
		return decideFetch(in, patterns)
	}
	return patterns[0], nil
}

// of is the patterns that name the tool.
func (p Policy) of(tool string) []Pattern {
	if !isName(tool) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Allow), func(pattern Pattern) bool { return !pattern.matchTool(tool) })
}

// Names reports whether a pattern names the tool, whatever its scope.
func (p Policy) Names(tool string) bool { return len(p.of(tool)) > 0 }

// BuiltIns names the engine's own tools that some pattern needs, sorted; an engine offers no others.
func (p Policy) BuiltIns() []string {
	var names []string
	for _, pattern := range p.Allow {
		if pattern.tool != "" && !strings.HasPrefix(pattern.tool, "mcp__") {
			names = append(names, pattern.tool)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pick returns the first pattern that matches. The error says what would have been allowed instead of what.
func pick(patterns []Pattern, what string, matches func(Pattern) bool) (Pattern, error) {
	if at := slices.IndexFunc(patterns, matches); at >= 0 {
		return patterns[at], nil
	}
	const most = 6
	var texts []string
	for _, p := range patterns[:min(most, len(patterns))] {
		texts = append(texts, p.text)
	}
	if len(patterns) > most {
		texts = append(texts, "…")
	}
	return Pattern{}, fmt.Errorf("%s matches none of the allowed patterns: %s", what, strings.Join(texts, ", "))
}
