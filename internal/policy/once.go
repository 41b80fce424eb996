package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Mode says what becomes of a use of a tool in the owner's own conversation that no pattern allows, but that one could.
type Mode string

// The modes, in the words of Claude Code.
const (
	DontAsk     Mode = "dontAsk"     // it is refused
	AskOwner    Mode = "default"     // the owner is asked
	AcceptEdits Mode = "acceptEdits" // the owner is asked, except about writing a file of the working directory
)

// CheckMode returns an error if the text is no Mode.
func CheckMode(text string) error {
	if slices.Contains([]Mode{DontAsk, AskOwner, AcceptEdits}, Mode(text)) {
		return nil
	}
	return fmt.Errorf("%q is not a permission mode: write %s, %s or %s", text, DontAsk, AskOwner, AcceptEdits)
}

// Once returns the pattern by which the owner can allow a use of a tool: it allows this use and little else. ok is false for a
// use that no pattern could allow.
func (p Policy) Once(tool string, input json.RawMessage) (pattern Pattern, ok bool) {
	in, err := readInput(tool, input)
	if err != nil {
		return Pattern{}, false
	}
	text := tool
	switch kind := kindOf(tool); {
	case kind == reading, kind == writing:
		text = tool + "(" + p.fromRoot(in) + ")"
	case kind == searching:
		text = tool + "(./**)"
	case tool == "Bash":
		text = tool + "(" + in.text("command") + ")"
	}
	if pattern, err = Parse(text); err != nil || pattern.judge(p.Roots[1:]) != nil {
		return Pattern{}, false
	}
	p.Allow = append(slices.Clone(p.Allow), pattern)
	return pattern, p.Decide(tool, input).Allow
}

// fromRoot returns the file of an input as a pattern names it, "" for one that no pattern may name.
func (p Policy) fromRoot(in fields) string {
	g, at, err := p.place(in.file())
	if err != nil {
		return ""
	}
	if names, ok := Below(at.Real, g.cwd); ok {
		return "./" + strings.Join(names, "/")
	}
	return at.Real
}
