package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Search is what a use of Glob or Grep could find below its directory, for an engine that makes it exactly as Decide has judged it.
type Search struct{ glob }

// Searched reads the glob of a search.
func Searched(tool string, input json.RawMessage) (Search, error) {
	in, err := readInput(tool, input)
	if err != nil {
		return Search{}, err
	}
	found, _, err := searched(tool, in)
	return Search{found}, err
}

// decideSearch decides Glob and Grep: one pattern must cover all that could be found, and none of it may be protected.
func (p Policy) decideSearch(tool string, in fields, patterns []Pattern) (Pattern, error) {
	path := "."
	if given, ok := in["path"]; ok {
		path, _ = given.(string)
	}
	g, at, err := p.place(path)
	if err != nil {
		return Pattern{}, err
	}
	if strings.Trim(in.text("type"), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
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

// searched is what a search could find below its directory, as a glob and as text.
func searched(tool string, in fields) (glob, string, error) {
	text := in.text("pattern")
	if tool == "Grep" {
		given, ok := in["glob"]
		if !ok {
			return glob{anyDepth, "*"}, anyDepth, nil
		}
		text, _ = given.(string)
	}
	found, err := searchGlob(text, tool == "Grep")
	if err != nil {
		return nil, "", fmt.Errorf("the glob %s: %w", quote(text), err)
	}
	return found, text, nil
}

// searchGlob reads a glob of a search. Without a slash it is taken to match at every depth, as in ripgrep; tools disagree about what
// the directories in one of Grep would be relative to.
func searchGlob(text string, grep bool) (glob, error) {
	if err := plaintext.Check(text, longestPath); err != nil {
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
		found = append(glob{anyDepth}, found...)
	}
	return found, err
}

// findable returns the name of a protected place below base that a search from there could find, or find something in.
func (g Ground) findable(base string, found glob) string {
	folded := glob(strings.Split(strings.ToLower(strings.ReplaceAll(strings.Join(found, "/"), "?", "*")), "/"))
	return g.guarding(func(place guard) bool {
		for _, path := range place.paths {
			names, below := Below(path, strings.ToLower(base))
			if below && (folded.Finds(names) || folded.Enters(names) && (place.info == nil || place.info.IsDir())) {
				return true
			}
		}
		return false
	})
}
