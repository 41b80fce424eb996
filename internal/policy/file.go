package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

const longestPath = 4096 // bytes; what Linux allows

// Place is what a path leads to. Real need not exist.
type Place struct {
	Real     string // absolute, without links
	Root     string // the innermost root around it, without links
	Writable bool   // that root is
}

// Place follows a path of a tool's input. The error says why no tool may go there: it is no plain path, protected, or outside
// the roots.
func (g Ground) Place(path string) (Place, error) {
	if err := literalPath(path); err != nil {
		return Place{}, fmt.Errorf("%s: %w", quote(path), err)
	}
	named := g.absolute(path)
	real, err := Resolve(named)
	if err != nil {
		return Place{}, fmt.Errorf("%s: %w", quote(path), err)
	}
	if name := g.protects(named, real); name != "" {
		return Place{}, fmt.Errorf("%s is in a protected path (%s)", quote(path), name)
	}
	var root realRoot
	for _, r := range g.roots {
		if within(real, r.real) && len(r.real) > len(root.real) {
			root = r
		}
	}
	if root.real == "" {
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
	if err := plaintext.Check(path, longestPath); err != nil {
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
func (p Policy) decideFile(tool string, in fields, patterns []Pattern) (Pattern, error) {
	path := in.file()
	g, at, err := p.place(path)
	if err != nil {
		return Pattern{}, err
	}
	write := Edits(tool)
	if write && !at.Writable {
		return Pattern{}, fmt.Errorf("%s is in a read-only directory", quote(path))
	}
	if info, err := os.Stat(at.Real); err == nil && !info.Mode().IsRegular() {
		return Pattern{}, fmt.Errorf("%s is not a regular file", quote(path))
	}
	return g.cover(split(at.Real), path, patterns, !write)
}
