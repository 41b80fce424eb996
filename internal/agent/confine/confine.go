// Package confine lists what the sealed programs of a run may access. It is a list of permissions, made anew for each program: readable
// are what the machine has for all users, the run's working directory and dirs; writable are rw: directories, the directories that
// patterns of Write and Edit begin with, and a private directory for temporary files. The rest of the owner's home is closed.
//
// A rule of the seal covers a whole tree. A directory that contains a protected path is therefore never granted as a whole: its entries
// are granted one by one, without those that are protected. An entry that is made later in such a directory is closed until the next
// program starts, and no sealed program can make one there. This package resolves links once, and grants their targets only where the
// targets would have been granted by their own names.
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
)

// Run is the run whose programs are to be sealed.
type Run struct {
	Home      paths.Dir
	Root      string        // working directory, absolute
	Dirs      []policy.Root // dirs of the job
	Allow     []string      // tool patterns in force
	Protected []string      // absolute paths, see Protected
	Env       []string      // environment of the programs: PATH, HOME and the places of toolchains
	Self      string        // path of the program ollim
	Private   []string      // directories of the run itself, without links: temporary files, caches
	Network   bool          // connections to any address are allowed
	Inside    bool          // the engine's own tools are sealed as well, and write what the patterns allow
}

// Protected returns the paths that no sealed program may access. secret are the paths outside the data directory that no agent may
// access.
func Protected(home paths.Dir, secret []string) []string {
	return append([]string{home.State(), home.Sessions(), home.Path("gates"), home.Config(), home.ToolPolicy()}, secret...)
}

// ErrProtected is the error of directories that a job may not have.
var ErrProtected = errors.New("protected")

// CheckDirs returns an error, on one line, if a directory of dirs contains a protected path or lies in one, by whatever links.
func CheckDirs(dirs []policy.Root, protected []string) error {
	g, err := policy.Policy{Roots: []policy.Root{{Dir: "/"}}, Protected: protected}.Ground()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		real, err := policy.Resolve(filepath.Clean(dir.Dir))
		if err != nil {
			continue // the path leads nowhere, and is checked again when it does
		}
		if err := refusal(g, dir.Dir, real); err != nil {
			return err
		}
	}
	return nil
}

// refusal returns an error if a directory of dirs may not be granted.
func refusal(g policy.Ground, named, real string) error {
	info, _ := os.Stat(real) // nil if the path does not exist
	if g.Hides(real, info) {
		return fmt.Errorf("%s is a %w path", named, ErrProtected)
	}
	if inside := g.Encloses(real); inside != "" {
		return fmt.Errorf("%s contains a %w path: %s: name directories beside it", named, ErrProtected, inside)
	}
	return nil
}

// List makes the rules of a run's programs.
type List struct {
	run    Run
	system func() grants
}

// grants are the paths that the machine offers to every run.
type grants struct {
	shared []string // paths of the system, the same for every user
	home   []string // toolchains and programs in other places
}

// New returns the list of a run. It reads nothing before the list is used.
func New(r Run) *List {
	l := &List{run: r}
	l.system = sync.OnceValue(l.machine)
	return l
}

// Rules returns the rules of a program that starts now.
func (l *List) Rules() (seal.Rules, error) {
	g, err := l.ground()
	if err != nil {
		return seal.Rules{}, err
	}
	rules, err := l.own(g, true)
	if err != nil {
		return seal.Rules{}, err
	}
	rules.Read = slices.Concat(l.system().shared, l.system().home, open(g, g.Dir()), rules.Read)
	if g.Encloses(g.Dir()) != "" {
		rules.List = append(rules.List, g.Dir())
	}
	return rules, nil
}

// own returns the rules without the machine's paths and without the content of the working directory. making says that a program starts
// now.
func (l *List) own(g policy.Ground, making bool) (seal.Rules, error) {
	r := l.run
	rules := seal.Rules{Network: r.Network, Canary: r.Home.Canary(), Write: append(devices(), r.Private...)}
	folders := l.folders(g, making)
	writable := append(policy.Writable(r.Dirs), folders...)
	for _, dir := range r.Dirs {
		if err := addDir(&rules, g, dir, writable); err != nil {
			return seal.Rules{}, err
		}
	}
	rules.Write = append(rules.Write, folders...)
	return rules, nil
}

func (l *List) ground() (policy.Ground, error) {
	return policy.Policy{Roots: append([]policy.Root{{Dir: l.run.Root}}, l.run.Dirs...), Protected: l.run.Protected}.Ground()
}

// addDir adds an entry of a job's dirs: a directory, a file, or a socket to connect to. It adds nothing if an agent has put a link in its
// place.
func addDir(rules *seal.Rules, g policy.Ground, dir policy.Root, writable []string) error {
	real, fixed, err := policy.Follow(filepath.Clean(dir.Dir), writable)
	if err != nil {
		return nil //nolint:nilerr // it leads nowhere
	}
	if err := refusal(g, dir.Dir, real); err != nil {
		return err
	}
	info, _ := os.Lstat(real)
	switch {
	case info == nil, !fixed: // the path was just removed or replaced
	case info.Mode()&fs.ModeSocket != 0:
		rules.Sockets = append(rules.Sockets, real)
	case dir.Writable:
		rules.Write = append(rules.Write, real)
	default:
		rules.Read = append(rules.Read, real)
	}
	return nil
}

// folders returns the directories and files that patterns of Write and Edit begin with. A pattern such as ./**.md begins with the working
// directory; if that contains protected paths, the pattern gives programs no access. An engine whose own tools are sealed gets the
// entries of the directory, except hidden files, so that these tools work.
func (l *List) folders(g policy.Ground, making bool) (list []string) {
	for _, text := range l.run.Allow {
		p, err := policy.Parse(text)
		if err != nil {
			continue // the pattern allows nothing
		}
		base, ok := p.WritesIn(g.Dir())
		if !ok {
			continue
		}
		base = g.Rooted(base)
		real, err := policy.Resolve(base)
		if err != nil || real != base || g.Hides(real, nil) {
			continue // a link gives no access, because another pattern may let the agent make one
		}
		if g.Encloses(real) != "" {
			if l.run.Inside && !making {
				list = append(list, real)
			} else if l.run.Inside {
				list = append(list, slices.DeleteFunc(open(g, real), func(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") })...)
			}
			continue
		}
		if slices.ContainsFunc(g.Roots(), func(root string) bool { return within(real, root) }) {
			if making && l.run.Root == string(l.run.Home) && !p.WritesFile() {
				_ = os.MkdirAll(real, 0o700) // a sealed program could not make it; on an error, the program finds nothing there
			}
			list = append(list, real)
		}
	}
	return list
}

// MakeFolders makes the directories that patterns of Write and Edit begin with, such as notes/ for notes/**.md, because a sealed tool
// could not. Sealed programs do not need them.
func (l *List) MakeFolders() error {
	if !l.run.Inside {
		return nil
	}
	g, err := l.ground()
	for _, text := range l.run.Allow {
		p, parseErr := policy.Parse(text)
		base, ok := p.WritesIn(g.Dir())
		base = g.Rooted(base)
		if parseErr != nil || !ok || !strings.Contains(text, "*") || !slices.ContainsFunc(g.Roots(), func(root string) bool { return within(base, root) }) {
			continue
		}
		if real, resolveErr := policy.Resolve(base); resolveErr == nil && real == base && !g.Hides(real, nil) {
			err = errors.Join(err, os.MkdirAll(real, 0o700))
		}
	}
	return err
}

// Summary returns the rules in the form of the record: the working directory as a whole, and no directory that is the same for every
// user. It includes toolchains only on request, because finding them takes longer. It makes no directory.
func (l *List) Summary(toolchains bool) (seal.Rules, error) {
	g, err := l.ground()
	if err != nil {
		return seal.Rules{}, err
	}
	rules, err := l.own(g, false)
	if err != nil {
		return seal.Rules{}, err
	}
	rules.Read = []string{l.run.Root}
	if toolchains {
		rules.Read = append(rules.Read, l.system().home...)
	}
	for _, dir := range l.run.Dirs {
		if !dir.Writable {
			rules.Read = append(rules.Read, dir.Dir)
		}
	}
	seen := map[string]bool{}
	written := slices.Concat(l.run.Private, rules.Write[len(devices()):])
	rules.Write = slices.DeleteFunc(written, func(path string) bool {
		again := seen[path]
		seen[path] = true
		return again
	})
	return rules, nil
}

// Writable reports whether the run can change a file, whose path is without links, or put another one in its place.
func (l *List) Writable(path string) bool {
	g, err := l.ground()
	rules, ownErr := l.own(g, false)
	if errors.Join(err, ownErr) != nil {
		return true // on an error the run is refused
	}
	info, _ := os.Lstat(path)
	return !g.Hides(path, info) && slices.ContainsFunc(rules.Write, func(dir string) bool { return within(path, dir) })
}

// open returns the paths, without links, that may be granted for a directory or file: itself, or the entries beside protected paths.
func open(g policy.Ground, path string) []string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink != 0 || g.Hides(path, info) {
		return nil
	}
	if g.Encloses(path) == "" && path != "/" {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil // nobody can read it
	}
	var list []string
	for _, entry := range entries {
		list = append(list, open(g, filepath.Join(path, entry.Name()))...)
	}
	return list
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
