package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
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
	// Sealed says that the kernel holds the programs that the agent starts to what they may reach. Then usageOf is in
	// force only for services.
	Sealed bool
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
		return Verdict{Reason: plaintext.Short(plaintext.Line(fmt.Sprintf("%s: %v", plaintext.Short(tool, 80), err)), 1000)}
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
		return p.decideFile(tool, in)
	case kind == searching:
		return p.decideSearch(tool, in)
	case kind == delegating:
		return decideName(in.text("subagent_type"), "", patterns)
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
	if len(patterns) == 0 {
		return Pattern{}, fmt.Errorf("%s is allowed by no pattern", what)
	}
	texts := make([]string, len(patterns))
	for i, p := range patterns {
		texts[i] = p.text
	}
	return Pattern{}, fmt.Errorf("%s matches none of the allowed patterns: %s", what, strings.Join(texts, ", "))
}

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
	if pattern, err = Parse(text); err != nil || Judge(text, p.Roots[1:]...) != nil {
		return Pattern{}, false
	}
	p.Allow = append(slices.Clone(p.Allow), pattern)
	return pattern, p.Decide(tool, input).Allow
}

// fromRoot returns the file of an input as a pattern names it, "" for one that no pattern may name.
func (p Policy) fromRoot(in fields) string {
	g, at, err := p.place(in.file())
	if names, ok := Below(at.Real, g.cwd); ok && err == nil {
		return "./" + strings.Join(names, "/")
	}
	return at.Real
}

// decideName decides a use by the name of a skill, a subagent or a host, and whether it has arguments.
func decideName(name, args string, patterns []Pattern) (Pattern, error) {
	return pick(patterns, quote(name), func(p Pattern) bool { return !p.scoped || match(p.name, name) && (args == "" || p.args) })
}

// decideSkill decides a skill. Arguments become part of its text, so they may not look like one of its commands.
func decideSkill(in fields, patterns []Pattern) (Pattern, error) {
	name, args := in.text("skill"), in.text("args")
	if !isSkill(name) {
		return Pattern{}, fmt.Errorf("%s is not the name of a skill", quote(name))
	}
	if strings.Contains(args, "!`") {
		return Pattern{}, errors.New("no !` in the arguments")
	}
	return decideName(name, args, patterns)
}

// decideFetch decides a web address, by its host.
func decideFetch(in fields, patterns []Pattern) (Pattern, error) {
	host, err := PublicHost(in.text("url"))
	if err != nil {
		return Pattern{}, fmt.Errorf("%s: %w", quote(in.text("url")), err)
	}
	return decideName(host, "", patterns)
}

// PublicHost is the host of a web address, in lower case. The address must be written as every reader of addresses understands it,
// and must not plainly be this machine or its network: its host is a name with a dot.
func PublicHost(address string) (string, error) {
	if err := plaintext.Check(address, longest); err != nil {
		return "", err
	}
	u, err := url.Parse(address)
	if err != nil || strings.ContainsAny(address, "\\ ") || !strings.HasPrefix(address, "http://"+u.Host) && !strings.HasPrefix(address, "https://"+u.Host) {
		return "", errors.New("want http://HOST/… or https://HOST/…")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case !isHost(host), strings.Trim(last, "0123456789") == "", strings.HasPrefix(last, "0x"):
		return "", errors.New("the host must be a name, not an address") // 127.1 and 0x7f.1 are addresses to some
	case last == host, slices.Contains([]string{"localhost", "local", "internal", "localdomain", "lan", "home", "arpa"}, last):
		return "", errors.New("only public hosts")
	}
	return host, nil
}
