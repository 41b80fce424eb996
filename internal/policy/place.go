package policy

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
)

// What stands here is for an engine that itself makes the uses that Decide has allowed: it must read an input, a path and a
// glob exactly as they were judged.

// CheckInput says what is wrong with a tool's input as such, nil if nothing is: it is no JSON object, has fields that are not
// known, given twice or of the wrong type, or lacks one.
func CheckInput(tool string, input json.RawMessage) error {
	_, err := readInput(tool, input)
	return err
}

// Covers says why no pattern allows the use of a file tool at a place, absolute and without links; nil if one does. A search is of
// what it finds below the place; its zero value stands for a file. Unlike Decide it looks at nothing on disk.
func (g Ground) Covers(allow []Pattern, tool, real string, found Search) error {
	segs := split(real)
	for _, s := range found.glob {
		segs = append(segs, s.text)
	}
	_, err := g.cover(segs, real, Policy{Allow: allow}.of(tool), kindOf(tool) != writing)
	return err
}

// Roots are the directories that file tools stay in, without links, the working directory first.
func (g Ground) Roots() (dirs []string) {
	for _, r := range g.roots {
		dirs = append(dirs, r.real)
	}
	return dirs
}

// Dir is the working directory, without links.
func (g Ground) Dir() string { return g.cwd }

// Hides reports whether a path, absolute and without links, is or lies in a protected place, or what info describes is one. By
// identity only the last name is compared: whoever goes down a tree asks at every step. info may be nil.
func (g Ground) Hides(path string, info fs.FileInfo) bool {
	return g.hiding(path, info) != ""
}

// Search is what a use of Glob or Grep could find below its directory, as Decide has judged it.
type Search struct{ glob glob }

// Searched reads the glob of a search.
func Searched(tool string, input json.RawMessage) (Search, error) {
	in, err := readInput(tool, input)
	if err != nil {
		return Search{}, err
	}
	segs, _, err := searched(tool, in)
	if err != nil {
		return Search{}, err
	}
	found := globOf(segs)
	for i := range found {
		found[i].text = segs[i]
	}
	return Search{found}, nil
}

// Finds reports whether the search is for a file of this name, given as its directories' names and its own.
func (s Search) Finds(names []string) bool { return s.glob.covers(names, true) }

// Enters reports whether the search could be for something in the directory of this name.
func (s Search) Enters(names []string) bool { return s.glob.enters(names) }

// Below is the names that lead from a directory to what is in it, or false. Both are clean and absolute.
func Below(path, dir string) ([]string, bool) {
	if !within(path, dir) {
		return nil, false
	}
	return split(strings.TrimPrefix(path, filepath.Clean(dir))), true
}
