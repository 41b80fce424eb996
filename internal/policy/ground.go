package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// guard is a protected place.
type guard struct {
	named, real string
	info        fs.FileInfo // nil if it does not exist
}

// holds reports whether a path is the place or lies in it. Names are compared without case, since some file systems do.
func (g guard) holds(path string) bool {
	path = strings.ToLower(path)
	return within(path, strings.ToLower(g.named)) || within(path, strings.ToLower(g.real))
}

// Ground looks at them. Without a working directory there is none.
func (p Policy) Ground() (Ground, error) {
	var g Ground
	for i, r := range p.Roots {
		if !filepath.IsAbs(r.Dir) {
			return Ground{}, errors.New("a root of this policy is not an absolute path")
		}
		dir := filepath.Clean(r.Dir)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil && i > 0 {
			continue // nothing can be in it
		}
		if err != nil {
			break
		}
		g.roots = append(g.roots, realRoot{named: dir, real: real, writable: r.Writable})
	}
	if len(g.roots) == 0 {
		return Ground{}, errors.New("no working directory")
	}
	g.named, g.cwd = g.roots[0].named, g.roots[0].real
	for _, path := range p.Protected {
		if !filepath.IsAbs(path) {
			return Ground{}, errors.New("a protected path of this policy is not absolute")
		}
		named := filepath.Clean(path)
		real, err := Resolve(named)
		if err != nil {
			return Ground{}, fmt.Errorf("a protected path cannot be read: %s", filepath.Base(named))
		}
		info, _ := os.Stat(real) // nil if there is nothing
		g.guards = append(g.guards, guard{named: named, real: real, info: info})
	}
	return g, nil
}

// errLink says that a path could not be followed to its end.
var errLink = errors.New("it contains a link or a file that cannot be followed")

// Resolve follows the links of an absolute path. What does not exist is taken below its deepest existing directory. A link that
// leads nowhere is an error: what it will lead to can be made later.
func Resolve(path string) (string, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		_, err := os.Lstat(at)
		if err == nil {
			real, err := filepath.EvalSymlinks(at)
			if err != nil {
				return "", errLink
			}
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return "", errLink
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// isFile reports whether there is anything but a directory.
func isFile(path string) bool {
	_, err := os.Lstat(path)
	info, statErr := os.Stat(path)
	return err == nil && (statErr != nil || !info.IsDir())
}

// within reports whether path is dir or below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// protects returns the name of the protected place that one of the paths (as named, and as resolved) is or lies in; directories that
// exist are compared by identity as well.
func (g Ground) protects(named, real string) string {
	name := g.hiding(named, nil)
	for at := real; name == ""; at = filepath.Dir(at) {
		info, _ := os.Stat(at) // nil if there is nothing
		if name = g.hiding(at, info); at == filepath.Dir(at) {
			break
		}
	}
	return name
}

// hiding returns the name of the protected place that a path is or lies in, or that info describes.
func (g Ground) hiding(path string, info fs.FileInfo) string {
	for _, guard := range g.guards {
		if guard.holds(path) || info != nil && guard.info != nil && os.SameFile(info, guard.info) {
			return filepath.Base(guard.named)
		}
	}
	return ""
}

// Encloses returns the name of a protected place that lies in a directory, absolute and without links; "" if none does.
func (g Ground) Encloses(real string) string {
	for _, guard := range g.guards {
		if within(strings.ToLower(guard.named), strings.ToLower(real)) || within(strings.ToLower(guard.real), strings.ToLower(real)) {
			return filepath.Base(guard.named)
		}
	}
	return ""
}

// rootOf is the innermost root around a resolved path.
func (g Ground) rootOf(real string) (realRoot, bool) {
	var best realRoot
	found := false
	for _, r := range g.roots {
		if within(real, r.real) && (!found || len(r.real) > len(best.real)) {
			best, found = r, true
		}
	}
	return best, found
}

// glob is a file pattern from the file system's root on, with the roots' own links resolved.
func (g Ground) glob(p Pattern) glob {
	if p.base == "" {
		return append(literals(split(g.cwd)), p.glob...)
	}
	base, rest := p.absolute("")
	var best realRoot
	for _, r := range g.roots {
		if within(base, r.named) && len(r.named) > len(best.named) {
			best = r
		}
	}
	if best.named != "" {
		base = filepath.Join(best.real, strings.TrimPrefix(base, best.named))
	}
	return append(literals(split(base)), rest...)
}

// split is the names of a clean absolute path.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
