package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Ground is a policy's roots and protected places as they are on disk at one moment.
type Ground struct {
	named  string // the working directory as the policy names it
	cwd    string // and with links resolved
	roots  []realRoot
	guards []guard
}

type realRoot struct {
	named, real string
	writable    bool
}

// guard is a protected place, as the policy names it or with links resolved.
type guard struct {
	name string
	path string      // in lower case, since some file systems ignore it
	info fs.FileInfo // nil if it does not exist
}

// Ground looks at them. Without a working directory there is none.
func (p Policy) Ground() (Ground, error) {
	var g Ground
	writable := Writable(p.Roots)
	for i, r := range p.Roots {
		if !filepath.IsAbs(r.Dir) {
			return Ground{}, errors.New("a root of this policy is not an absolute path")
		}
		real, fixed, err := Follow(filepath.Clean(r.Dir), writable)
		if err == nil && (fixed || i == 0) {
			g.roots = append(g.roots, realRoot{filepath.Clean(r.Dir), real, r.Writable})
		} else if i == 0 {
			break // nothing is in another one that does not exist, or that an agent that may write around it has replaced by a link
		}
	}
	if len(g.roots) == 0 {
		return Ground{}, errors.New("no working directory")
	}
	g.named, g.cwd = g.roots[0].named, g.roots[0].real
	look := remembering() // most protected paths lie in a few directories
	for _, path := range p.Protected {
		if !filepath.IsAbs(path) {
			return Ground{}, errors.New("a protected path of this policy is not absolute")
		}
		named := filepath.Clean(path)
		real, err := resolve(named, look)
		if err != nil {
			return Ground{}, fmt.Errorf("a protected path cannot be read: %s", filepath.Base(named))
		}
		info, _ := look(real) // nil if there is nothing
		name := filepath.Base(named)
		g.guards = append(g.guards, guard{name, strings.ToLower(named), nil}, guard{name, strings.ToLower(real), info})
	}
	return g, nil
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

// errLink says that a path could not be followed to its end.
var errLink = errors.New("it contains a link or a file that cannot be followed")

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

// Resolve follows the links of an absolute path. What does not exist is taken below its deepest existing directory. A link that
// leads nowhere is an error: what it will lead to can be made later.
func Resolve(path string) (string, error) { return resolve(path, os.Lstat) }

func resolve(path string, look lookup) (string, error) {
	real, missing, _, err := follow(path, nil, look)
	if err != nil {
		return "", errLink
	}
	return filepath.Join(append([]string{real}, missing...)...), nil
}

// Follow follows the links of an absolute path to something that exists. fixed is false if a name that lies in one of the directories,
// which are without links, leads out of all of them: what may write there decides where to.
func Follow(path string, writable []string) (real string, fixed bool, err error) {
	real, missing, fixed, err := follow(path, writable, os.Lstat)
	if len(missing) > 0 {
		err = fs.ErrNotExist
	}
	return real, err == nil && (fixed || inside(real, writable)), err
}

// lookup is os.Lstat, perhaps with a memory.
type lookup func(path string) (fs.FileInfo, error)

// remembering returns an os.Lstat that looks at a path once.
func remembering() lookup {
	seen := map[string]lookup{}
	return func(path string) (fs.FileInfo, error) {
		if seen[path] == nil {
			info, err := os.Lstat(path)
			seen[path] = func(string) (fs.FileInfo, error) { return info, err }
		}
		return seen[path](path)
	}
}

// follow returns the deepest existing directory or file of a path, and the names of the path that are missing below it. fixed is
// false if any name on the way lies in one of the directories.
func follow(path string, writable []string, look lookup) (real string, missing []string, fixed bool, err error) {
	real, fixed = "/", true
	names := split(path)
	own := len(names) // of the names that are left, the last ones that are the path's own and not a link's
	for links := 0; len(names) > 0; {
		fixed = fixed && !inside(real, writable)
		next := filepath.Join(real, names[0])
		info, err := look(next)
		if errors.Is(err, fs.ErrNotExist) && len(names) <= own {
			return real, names, fixed, nil
		}
		if err != nil {
			return "", nil, false, err
		}
		names = names[1:]
		own = min(own, len(names))
		if info.Mode()&fs.ModeSymlink == 0 {
			if real = next; !info.IsDir() && len(names) > 0 {
				return "", nil, false, errLink
			}
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", nil, false, errLink
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		names = append(split(target), names...)
	}
	return real, nil, fixed, nil
}

// Writable returns the directories in which an agent may write, without links; not those that lie in another one, where a link may
// have been put in their place.
func Writable(roots []Root) (dirs []string) {
	var all []string
	for _, r := range roots {
		if real, _, err := Follow(r.Dir, nil); err == nil && r.Writable {
			all = append(all, real)
		}
	}
	for _, r := range roots {
		if real, missing, fixed, err := follow(r.Dir, all, os.Lstat); err == nil && len(missing) == 0 && fixed && r.Writable {
			dirs = append(dirs, real)
		}
	}
	return dirs
}

// inside reports whether a path is in one of the directories.
func inside(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, dir) })
}

// within reports whether path is dir or below it. Both are clean.
func within(path, dir string) bool {
	rest, below := strings.CutPrefix(path, dir)
	return below && (rest == "" || rest[0] == '/') || dir == "/"
}

// Below is the names that lead from a directory to what is in it, or false. Both are clean and absolute.
func Below(path, dir string) ([]string, bool) {
	return split(strings.TrimPrefix(path, dir)), within(path, dir)
}

// split is the names of a clean absolute path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// guarding returns the name of the first protected place that has a property, "" if none has it.
func (g Ground) guarding(has func(guard) bool) string {
	if i := slices.IndexFunc(g.guards, has); i >= 0 {
		return g.guards[i].name
	}
	return ""
}

// protects returns the name of the protected place that one of the paths (as named, and as resolved) is or lies in; directories that
// exist are compared by identity as well.
func (g Ground) protects(named, real string) string {
	info, _ := os.Stat(real) // nil if there is nothing
	name, dir := cmp.Or(g.hiding(named, nil), g.hiding(real, info)), filepath.Dir(real)
	if name != "" || dir == real {
		return name
	}
	return g.protects(dir, dir)
}

// hiding returns the name of the protected place that a path is or lies in, or that info describes.
func (g Ground) hiding(path string, info fs.FileInfo) string {
	path = strings.ToLower(path)
	return g.guarding(func(place guard) bool {
		return within(path, place.path) || info != nil && place.info != nil && os.SameFile(info, place.info)
	})
}

// Hides reports whether a path, absolute and without links, is or lies in a protected place, or what info describes is one. By
// identity only the last name is compared: whoever goes down a tree asks at every step. info may be nil.
func (g Ground) Hides(path string, info fs.FileInfo) bool { return g.hiding(path, info) != "" }

// Encloses returns the name of a protected place that lies in a directory, absolute and without links; "" if none does.
func (g Ground) Encloses(real string) string {
	real = strings.ToLower(real)
	return g.guarding(func(place guard) bool { return within(place.path, real) })
}

// Covers returns the pattern that allows the use of a file tool at a place, absolute and without links. A search is of what it finds
// below the place; its zero value stands for a file. Unlike Decide it looks at nothing on disk.
func (g Ground) Covers(allow []Pattern, tool, real string, found Glob) (Pattern, error) {
	segs := append(split(real), found...)
	return pick(Policy{Allow: allow}.of(tool), quote(strings.Join(append([]string{""}, segs...), "/")), func(p Pattern) bool {
		if !p.scoped {
			return !Edits(tool)
		}
		base, rest := g.base(p)
		at := len(base)
		return len(segs) >= at && slices.Equal(segs[:at], base) && !slices.Contains(base, anyDepth) && rest.covers(segs[at:], !Edits(tool))
	})
}

// base is the names of the directory that a file pattern begins in, with the roots' own links resolved, and its glob below that.
func (g Ground) base(p Pattern) ([]string, Glob) {
	if p.base == "" {
		return split(g.cwd), p.glob
	}
	base, rest := p.absolute("")
	return split(g.Rooted(base)), rest
}

// Rooted is an absolute path with the links resolved by which the policy names the innermost root around it.
func (g Ground) Rooted(path string) string {
	var root realRoot
	for _, r := range g.roots {
		if within(path, r.named) && len(r.named) > len(root.named) {
			root = r
		}
	}
	return filepath.Join(root.real, strings.TrimPrefix(path, root.named))
}
