package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

const longest = 4096 // bytes of a path, which Linux allows, and of a pattern

// Place is what a path leads to. Real need not exist.
type Place struct {
	Real     string // absolute, without links
	Root     string // the innermost root around it, without links
	Writable bool   // that root is
}

// Place follows a path of a tool's input. The error says why no tool may go there: it is no plain path, protected, or outside
// the roots.
func (g Ground) Place(path string) (Place, error) {
	named := g.absolute(path)
	real, err := Resolve(named)
	err = cmp.Or(literalPath(path), err)
	var root realRoot
	for _, r := range g.roots {
		if within(real, r.real) && len(r.real) > len(root.real) {
			root = r
		}
	}
	switch name := g.protects(named, real); {
	case err != nil:
		return Place{}, fmt.Errorf("%s: %w", quote(path), err)
	case name != "":
		return Place{}, fmt.Errorf("%s is in a protected path (%s)", quote(path), name)
	case root.real == "":
		return Place{}, fmt.Errorf("%s is outside the working directory and the approved dirs", quote(path))
	}
	return Place{Real: real, Root: root.real, Writable: root.writable}, nil
}

// place follows a path of a tool's input from where the policy stands now.
func (p Policy) place(path string) (g Ground, at Place, err error) {
	if g, err = p.Ground(); err == nil {
		at, err = g.Place(path)
	}
	return g, at, err
}

// absolute is a path as it is named from the file system's root on.
func (g Ground) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(g.named, path)
}

// literalPath refuses paths that some tool would read as something else.
func literalPath(path string) error {
	if err := plaintext.Check(path, longest); err != nil {
		return err
	}
	switch {
	case path == "":
		return errors.New("the path is empty")
	case strings.TrimSpace(path) != path, strings.ContainsFunc(path, func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }):
		return errors.New("no space at either end, and no other white space")
	case strings.ContainsAny(path, `\`):
		return errors.New(`no \ in a path`)
	case strings.HasPrefix(path, "~"):
		return errors.New("write the directory instead of ~")
	case strings.HasSuffix(path, "/"):
		return errors.New("no / at the end")
	case slices.Contains(strings.Split(path, "/"), ".."):
		return errors.New("no .. in a path")
	case strings.Count(path, "/") > deepest:
		return fmt.Errorf("more than %d directories deep", deepest)
	}
	return nil
}

// decideFile decides a tool that reads or writes one file.
func (p Policy) decideFile(tool string, in fields) (Pattern, error) {
	path := in.file()
	g, at, err := p.place(path)
	if err != nil {
		return Pattern{}, err
	}
	if Edits(tool) && !at.Writable {
		return Pattern{}, fmt.Errorf("%s is in a read-only directory", quote(path))
	}
	if info, err := os.Stat(at.Real); err == nil && !info.Mode().IsRegular() {
		return Pattern{}, fmt.Errorf("%s is not a regular file", quote(path))
	}
	return g.Covers(p.Allow, tool, at.Real, nil)
}

// Searched is what a use of Glob or Grep could find below its directory, for an engine that makes it exactly as Decide has judged it.
func Searched(tool string, input json.RawMessage) (Glob, error) {
	in, err := readInput(tool, input)
	if err != nil {
		return nil, err
	}
	return searched(tool, in)
}

// decideSearch decides Glob and Grep: one pattern must cover all that could be found. Engines leave out what is protected below the
// working directory, so that a search may begin above it; elsewhere none may.
func (p Policy) decideSearch(tool string, in fields) (Pattern, error) {
	path := "."
	if _, ok := in["path"]; ok {
		path = in.text("path")
	}
	g, at, err := p.place(path)
	if err != nil {
		return Pattern{}, err
	}
	found, err := searched(tool, in)
	info, statErr := os.Stat(at.Real)
	name := g.Encloses(at.Real)
	switch {
	case strings.Trim(in.text("type"), "abcdefghijklmnopqrstuvwxyz0123456789") != "":
		err = errors.New("type is a word such as md")
	case statErr == nil && tool == "Grep" && info.Mode().IsRegular():
		found, err = nil, nil
	case statErr == nil && !info.IsDir():
		err = fmt.Errorf("%s is not a directory", quote(path))
	case name != "" && !within(at.Real, g.cwd):
		err = fmt.Errorf("%s contains a protected path (%s); name another directory in path", quote(path), name)
	}
	if err != nil {
		return Pattern{}, err
	}
	by, err := g.Covers(p.Allow, tool, at.Real, found)
	if err != nil && tool == "Grep" && in.text("glob") == "" {
		err = fmt.Errorf("%w; narrow it with glob, such as \"*.md\"", err)
	}
	return by, err
}

// searched is what a search could find below its directory.
func searched(tool string, in fields) (Glob, error) {
	text := in.text("pattern")
	if _, ok := in["glob"]; tool == "Grep" && !ok {
		return Glob{anyDepth, "*"}, nil
	} else if tool == "Grep" {
		text = in.text("glob")
	}
	found, err := searchGlob(text, tool == "Grep")
	if err != nil {
		return nil, fmt.Errorf("the glob %s: %w", quote(text), err)
	}
	return found, nil
}

// searchGlob reads a glob of a search. Without a slash it is taken to match at every depth, as in ripgrep; tools disagree about what
// the directories in one of Grep would be relative to.
func searchGlob(text string, grep bool) (Glob, error) {
	if err := plaintext.Check(text, longest); err != nil {
		return nil, err
	}
	switch {
	case strings.ContainsAny(text, ", "):
		return nil, errors.New("one glob at a time, without commas and spaces")
	case strings.HasPrefix(text, "/"), grep && strings.Contains(strings.TrimPrefix(text, "**/"), "/"):
		return nil, errors.New("put the directory into path")
	}
	found, err := readGlob(text)
	if err == nil && !strings.Contains(text, "/") && found[0] != anyDepth {
		found = append(Glob{anyDepth}, found...)
	}
	return found, err
}
