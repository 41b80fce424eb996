package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/shell"
)

// Pattern names a tool and what may be done with it. The zero Pattern matches nothing.
type Pattern struct {
	text   string
	tool   string // for MCP with * at the end, or only a server
	server string // MCP: whose tools are named
	scoped bool
	words  [][]string // Bash: of the command, each as the pieces between its wildcards; a lone * is two empty ones
	glob   Glob       // file tools: below base
	base   string     // file tools: "" is the working directory, "/" the file system's root
	name   string     // WebFetch: of the host; Task: of the subagent; Skill: of the skill; each perhaps with *
	args   bool       // Skill: with any arguments
}

// Unsealed says why a Bash pattern is in force only where programs are sealed; "" if it is in force everywhere.
func (p Pattern) Unsealed() string {
	if p.words == nil {
		return ""
	}
	begin, literal := heads(p.words)
	return refusal(begin, literal, false)
}

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// OwnServer is the name of the MCP server of ollim's own tools.
const OwnServer = "ollim"

// Files lists what a Bash pattern could name as a file: each literal word, and the value of one of the form NAME=VALUE. A
// command without a slash comes from PATH, and the words of ollim are its own. onlyData reports whether the command only reads: it executes
// nothing that is in the files.
func (p Pattern) Files() (names []string, onlyData bool) {
	for i, w := range p.words {
		if p.words[0][0] == ollim || len(w) > 1 || i == 0 && !strings.Contains(w[0], "/") {
			continue
		}
		names = append(names, w[0])
		if _, value, ok := strings.Cut(w[0], "="); ok {
			names = append(names, value)
		}
	}
	return names, len(p.words) > 0 && len(p.words[0]) == 1 && slices.Contains(readers(), p.words[0][0])
}

// Parse reads a pattern. The error says why no policy may hold it: it is no pattern, or its shape gives away more than a scope
// can hold (Bash without a command, unscoped writing, a service without a verb that only reads).
func Parse(text string) (Pattern, error) {
	tool, scope, scoped := strings.Cut(text, "(")
	scope, closed := strings.CutSuffix(scope, ")")
	mcp, isMCP := strings.CutPrefix(tool, "mcp__")
	p := Pattern{text: text, tool: tool, scoped: scoped}
	invisible := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ' }
	err := plaintext.Check(text, longest)
	switch {
	case err != nil:
	case strings.ContainsFunc(text, invisible):
		err = errors.New("no invisible character")
	case strings.TrimSpace(text) == "":
		err = errors.New("it is empty")
	case scoped && !closed:
		err = errors.New("want TOOL or TOOL(SCOPE)")
	case scoped && strings.TrimSpace(scope) == "":
		err = errors.New("empty parentheses")
	case isMCP:
		err = p.readMCP(mcp)
	case !isName(tool):
		err = fmt.Errorf("%q is not the name of a tool", tool)
	default:
		err = p.readScope(scope)
	}
	if err != nil {
		return Pattern{}, fmt.Errorf("tool pattern %s: %w", quote(text), err)
	}
	return p, nil
}

func (p *Pattern) readMCP(rest string) error {
	server, tool, named := strings.Cut(rest, "__")
	switch {
	case p.scoped:
		return errors.New("an MCP tool takes no scope")
	case !isName(server):
		return errors.New("want mcp__SERVER, mcp__SERVER__TOOL or mcp__SERVER__*")
	case named && tool != "*" && !isName(strings.TrimSuffix(tool, "*")):
		return errors.New("want mcp__SERVER__TOOL, with * only at the end")
	}
	p.server = server
	return nil
}

func (p *Pattern) readScope(scope string) error {
	switch kind := kindOf(p.tool); {
	case p.tool == "Bash":
		return p.readCommand(scope)
	case !p.scoped && kind == writing:
		return errors.New("writing needs a scope, such as (./notes/**.md)")
	case !p.scoped:
	case kind == reading || kind == writing || kind == searching:
		return p.readGlob(scope, kind == writing)
	case p.tool == "Skill":
		var args string
		p.name, args, p.args = strings.Cut(scope, " ")
		if !isSkill(p.name) && p.name != "*" || p.args && args != "*" {
			return errors.New("want Skill(NAME), or Skill(NAME *) for any arguments")
		}
	case p.tool == "WebFetch":
		var ok bool
		p.name, ok = strings.CutPrefix(scope, "domain:")
		if !ok || strings.ToLower(p.name) != p.name || !isHost(strings.TrimPrefix(p.name, "*.")) {
			return errors.New("want WebFetch(domain:HOST) or WebFetch(domain:*.HOST), in lower case")
		}
	case kind == delegating:
		if p.name = scope; !isName(scope) {
			return errors.New("the scope is the name of a subagent")
		}
	case kind == unknown:
		return unknownTool(p.tool)
	default:
		return fmt.Errorf("%s takes no scope", p.tool)
	}
	return nil
}

func (p *Pattern) readCommand(scope string) (err error) {
	p.words, err = shell.Patterns(scope, true)
	begin, literal := heads(p.words)
	switch {
	case !p.scoped || strings.Trim(scope, "* ") == "":
		return errors.New("it allows every command; name one, such as Bash(ollim tasks *)")
	case strings.HasSuffix(scope, ":*"):
		return fmt.Errorf("write Bash(%s *): the * must be a separate word", plaintext.Short(strings.TrimSuffix(scope, ":*"), 80))
	case err != nil:
		return err
	case refusal(begin, literal, true) != "":
		return errors.New(refusal(begin, literal, true))
	}
	return nil
}

func (p *Pattern) readGlob(scope string, write bool) (err error) {
	rest, absolute := strings.CutPrefix(scope, "/")
	if absolute {
		p.base = "/"
	}
	p.glob, err = readGlob(rest)
	switch {
	case strings.TrimSpace(scope) != scope:
		return errors.New("no space at either end of a path")
	case strings.HasPrefix(rest, "/"):
		return errors.New("an absolute path begins with one slash")
	case err == nil && strings.Contains(rest, "?"):
		return errors.New("the wildcards are * and **")
	case err == nil && write && strings.Trim(strings.Join(p.glob, ""), ".*") == "":
		return errors.New("writing needs a scope that names a directory or a kind of file, such as (./notes/**.md)")
	}
	return err
}

// absolute is the path that the literal beginning of a file pattern names, under the working directory if it is relative.
func (p Pattern) absolute(cwd string) (base string, rest Glob) {
	base, rest = p.base, p.glob
	if base == "" {
		base = cwd
	}
	for len(rest) > 1 && !strings.Contains(rest[0], "*") {
		base, rest = filepath.Join(base, rest[0]), rest[1:]
	}
	return base, rest
}

// WritesIn returns the directory, or the file, that a pattern of a writing tool begins with; ok is false for other patterns. Relative
// ones begin in cwd.
func (p Pattern) WritesIn(cwd string) (path string, ok bool) {
	if !Edits(p.tool) {
		return "", false
	}
	path, rest := p.absolute(cwd)
	if p.WritesFile() {
		path = filepath.Join(path, rest[0])
	}
	return path, true
}

// WritesFile reports whether the pattern of a writing tool names one file.
func (p Pattern) WritesFile() bool { return !strings.Contains(strings.Join(p.glob, ""), "*") }

// matchTool reports whether the pattern names this tool; for MCP also by server or by the beginning of the tool's name.
func (p Pattern) matchTool(tool string) bool {
	if p.tool == tool || kindOf(p.tool) == delegating && kindOf(tool) == delegating {
		return p.tool != ""
	}
	_, begin, named := strings.Cut(strings.TrimPrefix(p.tool, "mcp__"), "__")
	if p.server == "" || named && !strings.HasSuffix(begin, "*") {
		return false
	}
	name, ok := strings.CutPrefix(tool, "mcp__"+p.server+"__")
	// A name with another __ could be a tool of a server whose name only begins like this one.
	return ok && isName(name) && !strings.Contains(name, "__") && strings.HasPrefix(name, strings.TrimSuffix(begin, "*"))
}

// isName reports whether s is ASCII letters, digits, _ and -, at least one and at most 128.
func isName(s string) bool {
	return s != "" && len(s) <= 128 && plaintext.IsWord(s, "_-")
}

// isSkill reports whether s can be a skill's name; plugin:skill is one.
func isSkill(s string) bool {
	return isName(strings.NewReplacer(".", "", ":", "").Replace(s)) && !strings.HasPrefix(s, ".")
}

// isHost reports whether s is a host name of letters, digits, dots and hyphens.
func isHost(s string) bool {
	return !slices.ContainsFunc(strings.Split(s, "."), func(label string) bool { return !isName(label) })
}

// quote shows text from outside in one short line.
func quote(s string) string { return strconv.Quote(plaintext.Short(s, 80)) }
