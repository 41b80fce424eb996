package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// decideSearch decides Glob and Grep: one pattern must cover all that could be found, and none of it may be protected.
func (p Policy) decideSearch(tool string, in fields, patterns []Pattern) (Pattern, error) {
	g, err := p.Ground()
	if err != nil {
		return Pattern{}, err
	}
	path := "."
	if given, ok := in["path"]; ok {
		path, _ = given.(string)
	}
	at, err := g.Place(path)
	if err != nil {
		return Pattern{}, err
	}
	if kind := in.text("type"); strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return Pattern{}, errors.New("type is a word such as md")
	}
	if info, err := os.Stat(at.Real); err == nil && !info.IsDir() {
		if tool != "Grep" || !info.Mode().IsRegular() {
			return Pattern{}, fmt.Errorf("%s is not a directory", quote(path))
		}
		return g.cover(split(at.Real), path, patterns, true)
	}
	found, what, err := searched(tool, in)
	if err != nil {
		return Pattern{}, err
	}
	if what = filepath.Join(path, what); !p.SearchHides || !within(at.Real, g.cwd) {
		if name := g.findable(at.Real, found); name != "" {
			return Pattern{}, fmt.Errorf("%s could match files in a protected path (%s); name another directory in path, "+
				"such as \"routines\"", quote(what), name)
		}
	}
	by, err := g.cover(append(split(at.Real), found...), what, patterns, true)
	if err != nil && tool == "Grep" && in.text("glob") == "" {
		err = fmt.Errorf("%w; narrow it with glob, such as \"*.md\"", err)
	}
	return by, err
}

// searched is what a search could find below its directory, as segments of a glob, and as text.
func searched(tool string, in fields) ([]string, string, error) {
	text := in.text("pattern")
	if tool == "Grep" {
		given, ok := in["glob"]
		if !ok {
			return []string{anyDepth, "*"}, anyDepth, nil
		}
		text, _ = given.(string)
	}
	segs, err := searchGlob(text)
	if err == nil && tool == "Grep" && strings.Contains(strings.TrimPrefix(text, "**/"), "/") {
		err = errors.New("put the directory into path") // tools disagree about what it would be relative to
	}
	if err != nil {
		return nil, "", fmt.Errorf("the glob %s: %w", quote(text), err)
	}
	return segs, text, nil
}

// searchGlob reads a glob of a search. Without a slash it is taken to match at every depth, as in ripgrep.
func searchGlob(text string) ([]string, error) {
	if err := plaintext.Check(text, longestPath); err != nil {
		return nil, err
	}
	switch {
	case strings.ContainsAny(text, ", "):
		return nil, errors.New("one glob at a time, without commas and spaces")
	case strings.HasPrefix(text, "/"):
		return nil, errors.New("put the directory into path")
	}
	segs, err := segmentsOf(text)
	if err == nil && !strings.Contains(text, "/") && segs[0] != anyDepth {
		segs = append([]string{anyDepth}, segs...)
	}
	return segs, err
}

// findable returns the name of a protected place that a search below base could find, or find something in.
func (g Ground) findable(base string, segs []string) string {
	folded := make([]string, len(segs))
	for i, s := range segs {
		if folded[i] = s; s != anyDepth {
			folded[i] = strings.ToLower(strings.ReplaceAll(s, "?", "*"))
		}
	}
	search := append(literals(split(strings.ToLower(base))), globOf(folded)...)
	for _, guard := range g.guards {
		file := guard.info != nil && !guard.info.IsDir()
		for _, path := range []string{guard.named, guard.real} {
			names := split(strings.ToLower(path))
			if file && search.covers(names, true) || !file && search.enters(names) {
				return filepath.Base(guard.named)
			}
		}
	}
	return ""
}
