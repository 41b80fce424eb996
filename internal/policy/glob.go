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

// glob is a pattern for paths, one element per directory, the last for the file.
type glob []segment

type segment struct {
	deep bool // any number of directories; name is unused
	name wild
	text string // of a search that is made: what name was read from, in which a ? is one character
}

func (s segment) match(name string) bool {
	if s.text == "" {
		return s.name.match(name)
	}
	ok, err := path.Match(s.text, name) // it holds none of what only path.Match knows: [ ] and \
	return ok && err == nil
}

// segmentsOf reads the text of a glob and returns its segments in the canonical form: "**" alone, or a name with single
// stars. "**.md" becomes "**", "*.md"; a final "**" becomes "**", "*".
func segmentsOf(text string) ([]string, error) {
	text = strings.TrimPrefix(text, "./")
	if text == "" {
		return nil, errors.New("names no file")
	}
	if strings.ContainsAny(text, `[]{}()!\~`) {
		return nil, errors.New(`the wildcards are * and **; none of [ ] { } ( ) ! ~ \ may be used`)
	}
	parts := strings.Split(text, "/")
	if len(parts) > deepest {
		return nil, fmt.Errorf("more than %d directories deep", deepest)
	}
	var segs []string
	for i, part := range parts {
		rest, deep := strings.CutPrefix(part, anyDepth)
		switch {
		case part == "" || part == "." || part == "..":
			return nil, fmt.Errorf("%q is not allowed as a part of it", part)
		case strings.Contains(rest, anyDepth), deep && strings.HasPrefix(rest, "*"):
			return nil, errors.New("** may only be at the beginning of a name")
		case !deep:
			segs = append(segs, part)
		case rest != "":
			segs = append(segs, anyDepth, "*"+rest)
		case i == len(parts)-1:
			segs = append(segs, anyDepth, "*")
		default:
			segs = append(segs, anyDepth)
		}
	}
	return segs, nil
}

func globOf(segs []string) glob {
	g := make(glob, len(segs))
	for i, s := range segs {
		if s == anyDepth {
			g[i].deep = true
		} else {
			g[i].name = parseWild(s)
		}
	}
	return g
}

// literals is a glob that matches exactly this path.
func literals(segs []string) glob {
	g := make(glob, len(segs))
	for i, s := range segs {
		g[i].name = wild{s}
	}
	return g
}

// covers reports whether g matches the path, or, where segs come from another glob, everything that it matches: a star of
// theirs is then text that only a star of g can take, and their ** can only be taken by a ** of g. It may miss that one glob
// contains another, never in reverse. Without dots, wildcards do not match names that begin with a dot.
func (g glob) covers(segs []string, dots bool) bool {
	return slices.Contains(g.states(segs, dots), len(g))
}

// enters reports whether g could match the path or anything below it.
func (g glob) enters(names []string) bool { return len(g.states(names, true)) > 0 }

// states are where g can be after the path.
func (g glob) states(segs []string, dots bool) []int {
	states := g.rest([]int{0})
	for _, seg := range segs {
		states = g.step(states, seg, dots)
	}
	return states
}

// step moves every state past one name.
func (g glob) step(states []int, seg string, dots bool) []int {
	var next []int
	hidden := !dots && strings.HasPrefix(seg, ".")
	for _, i := range states {
		switch {
		case i == len(g):
		case g[i].deep:
			if !hidden {
				next = append(next, i)
			}
		case seg != anyDepth && g[i].match(seg) && (!hidden || strings.HasPrefix(g[i].name[0], ".")):
			next = append(next, i+1)
		}
	}
	return g.rest(next)
}

// rest adds the states that are reached by letting a ** match nothing.
func (g glob) rest(states []int) []int {
	for i := 0; i < len(states); i++ {
		if s := states[i]; s < len(g) && g[s].deep {
			states = append(states, s+1)
		}
	}
	slices.Sort(states)
	return slices.Compact(states)
}

// vague reports whether the glob names nothing: only wildcards and dots.
func (g glob) vague() bool {
	for _, s := range g {
		if !s.deep && strings.Trim(strings.Join(s.name, ""), ".?") != "" {
			return false
		}
	}
	return true
}
