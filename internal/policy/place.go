package policy

import (
	"encoding/json"
	"io/fs"
	"os"
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

// Ground is a policy's roots and protected places as they are on disk at one moment.
type Ground struct{ ground }

// Ground looks at them. Without a working directory there is none.
func (p Policy) Ground() (Ground, error) {
	g, err := p.ground()
	return Ground{g}, err
}

// Place is what a path leads to. Real need not exist.
type Place struct {
	Real     string // absolute, without links
	Root     string // the innermost root around it, without links
	Writable bool   // that root is
}

// Place follows a path of a tool's input. The error says why no tool may go there: it is no plain path, protected, or outside
// the roots.
func (g Ground) Place(path string) (Place, error) {
	at, root, err := g.place(path)
	if err != nil {
		return Place{}, err
	}
	return Place{Real: at.real, Root: root.real, Writable: root.writable}, nil
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
	folded := strings.ToLower(path)
	for _, guard := range g.guards {
		if within(folded, strings.ToLower(guard.named)) || within(folded, strings.ToLower(guard.real)) ||
			info != nil && guard.info != nil && os.SameFile(info, guard.info) {
			return true
		}
	}
	return false
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

// PublicHost is the host of a web address, in lower case, as Decide reads it. The error says why it is none that may be fetched.
func PublicHost(address string) (string, error) { return publicHost(address) }

// Below is the names that lead from a directory to what is in it, or false. Both are clean and absolute.
func Below(path, dir string) ([]string, bool) {
	if !within(path, dir) {
		return nil, false
	}
	return split(strings.TrimPrefix(path, filepath.Clean(dir))), true
}
