package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// deepest is how many directories a glob or a path may name.
const deepest = 128

// anyDepth is the segment that stands for any number of directories, also none.
const anyDepth = "**"

// Glob is a pattern for paths, one segment per directory, the last for the file: anyDepth alone, or a name with single stars, in a
// search also with ? for one character.
type Glob []string

// readGlob reads the text of a glob: "**.md" becomes "**", "*.md"; a final "**" becomes "**", "*".
func readGlob(text string) (Glob, error) {
	text = strings.TrimPrefix(text, "./")
	parts := strings.Split(text, "/")
	switch {
	case text == "":
		return nil, errors.New("names no file")
	case strings.ContainsAny(text, `[]{}()!\~`):
		return nil, errors.New(`the wildcards are * and **; none of [ ] { } ( ) ! ~ \ may be used`)
	case len(parts) > deepest:
		return nil, fmt.Errorf("more than %d directories deep", deepest)
	}
	var g Glob
	for i, part := range parts {
		rest, deep := strings.CutPrefix(part, anyDepth)
		switch {
		case part == "" || part == "." || part == "..":
			return nil, fmt.Errorf("%q is not allowed as a part of it", part)
		case strings.Contains(rest, anyDepth), deep && strings.HasPrefix(rest, "*"):
			return nil, errors.New("** may only be at the beginning of a name")
		case !deep:
			g = append(g, part)
		case rest != "" || i == len(parts)-1:
			g = append(g, anyDepth, "*"+rest)
		default:
			g = append(g, anyDepth)
		}
	}
	return g, nil
}

// match reports whether a name is the pattern with text for each * and a character for each ?. Neither pattern may hold [ or \, which
// only path.Match knows.
func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// covers reports whether g matches the path, or, where segs come from another glob, everything that it matches: a star of
// theirs is then text that only a star of g can take, and their ** can only be taken by a ** of g. It may miss that one glob
// contains another, never in reverse. Without dots, wildcards do not match names that begin with a dot.
func (g Glob) covers(segs []string, dots bool) bool { return g.after(segs, dots)[len(g)] }

// Finds reports whether a search is for a file of this name, given as its directories' names and its own.
func (g Glob) Finds(names []string) bool { return g.covers(names, true) }

// Enters reports whether a search could be for something in the directory of this name, or for it.
func (g Glob) Enters(names []string) bool { return slices.Contains(g.after(names, true), true) }

// after reports for every number of segments of g whether they can match the path.
func (g Glob) after(path []string, dots bool) []bool {
	at := make([]bool, len(g)+1)
	for at[0] = true; ; path = path[1:] {
		for i, s := range g {
			at[i+1] = at[i+1] || at[i] && s == anyDepth
		}
		if len(path) == 0 {
			return at
		}
		next := make([]bool, len(g)+1)
		hidden := !dots && strings.HasPrefix(path[0], ".")
		for i, s := range g {
			switch {
			case !at[i]:
			case s == anyDepth:
				next[i] = next[i] || !hidden
			case path[0] != anyDepth && match(s, path[0]) && (!hidden || s[0] == '.'):
				next[i+1] = true
			}
		}
		at = next
	}
}
