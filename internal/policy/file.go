package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// What Linux allows, in bytes.
const (
	longestPath = 4096
	longestName = 255
)

// place is a path from a tool's input.
type place struct {
	named string
	real  string
	info  fs.FileInfo // nil if there is nothing
}

// place reads a path and finds what it leads to: inside a root, outside the protected places.
func (g ground) place(path string) (place, realRoot, error) {
	if err := literalPath(path); err != nil {
		return place{}, realRoot{}, fmt.Errorf("%s: %w", quote(path), err)
	}
	at := place{named: filepath.Clean(path)}
	if !filepath.IsAbs(path) {
		at.named = filepath.Join(g.named, path)
	}
	var err error
	if at.real, err = Resolve(at.named); err != nil {
		return place{}, realRoot{}, fmt.Errorf("%s: %w", quote(path), err)
	}
	if name := g.protects(at.named, at.real); name != "" {
		return place{}, realRoot{}, fmt.Errorf("%s is in a protected path (%s)", quote(path), name)
	}
	root, ok := g.rootOf(at.real)
	if !ok {
		return place{}, realRoot{}, fmt.Errorf("%s is outside the working directory and the approved dirs", quote(path))
	}
	if info, err := os.Stat(at.real); err == nil {
		at.info = info
	}
	return at, root, nil
}

// literalPath refuses paths that some tool would read as something else.
func literalPath(path string) error {
	if err := plainText(path, longestPath); err != nil {
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
func decideFile(g ground, tool string, in fields, patterns []Pattern) (Pattern, error) {
	path := in.text("file_path")
	if tool == "NotebookEdit" {
		path = in.text("notebook_path")
	}
	at, root, err := g.place(path)
	if err != nil {
		return Pattern{}, err
	}
	write := kindOf(tool) == writing
	if write && !root.writable {
		return Pattern{}, fmt.Errorf("%s is in a read-only directory", quote(path))
	}
	if at.info != nil && !at.info.Mode().IsRegular() {
		return Pattern{}, fmt.Errorf("%s is not a regular file", quote(path))
	}
	return g.cover(split(at.real), path, patterns, !write)
}

// cover returns the pattern that covers the path, or the glob's segments, that what describes.
func (g ground) cover(segs []string, what string, patterns []Pattern, dots bool) (Pattern, error) {
	for _, p := range patterns {
		if !p.scoped && kindOf(p.tool) != writing || p.scoped && g.glob(p).covers(segs, dots) {
			return p, nil
		}
	}
	return Pattern{}, unmatched(quote(what), patterns)
}
