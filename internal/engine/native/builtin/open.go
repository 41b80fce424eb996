package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
)

var (
	errProtected = errors.New("it is in a protected place")
	errMoved     = errors.New("it has just been moved or replaced")
)

// spot is a name in an opened directory.
type spot struct {
	dir   *os.Root
	name  string
	place policy.Place
	fresh fs.FileMode // mode of a new file, before the umask
	g     policy.Ground
}

func wrong(path string, err error) error { return fmt.Errorf("%s: %s", shown(path), store.Cause(err)) }

func (b *Box) ground() (policy.Ground, error) {
	return policy.Policy{Roots: b.Roots, Protected: b.Protected}.Ground()
}

// pinned holds the roots as they were when the box was opened.
type pinned struct {
	g     policy.Ground
	roots map[string]fs.FileInfo // by path without links
	err   error
}

// Open records the identity of the roots. Otherwise the first use of a file tool does.
func (b *Box) Open() {
	b.once.Do(func() {
		b.pinned.roots = map[string]fs.FileInfo{}
		if b.pinned.g, b.pinned.err = b.ground(); b.pinned.err != nil {
			return
		}
		for _, dir := range b.pinned.g.Roots() {
			if info, err := os.Lstat(dir); err == nil {
				b.pinned.roots[dir] = info
			}
		}
	})
}

// enter opens the directory at path on the way to place, after judging a use of the tool at place itself. It makes missing directories
// with the mode making; 0 makes none.
func (b *Box) enter(g policy.Ground, tool string, place policy.Place, found policy.Glob, path string, making fs.FileMode) (*os.Root, error) {
	b.Open()
	p := &b.pinned
	if p.err != nil {
		return nil, p.err
	}
	if _, err := p.g.Covers(b.Allow, tool, place.Real, found); err != nil {
		return nil, err
	}
	names, ok := policy.Below(path, place.Root)
	was := p.roots[place.Root]
	if !ok || was == nil {
		return nil, errMoved
	}
	dir, err := os.OpenRoot(place.Root)
	if err != nil {
		return nil, err
	}
	if now, err := dir.Stat("."); err != nil || !os.SameFile(was, now) {
		_ = dir.Close()
		return nil, errMoved
	}
	return down(g, dir, place.Root, names, making)
}

// purpose is the name of the tool for which a spot is opened.
type purpose string

const (
	toRead  purpose = "Read"
	toEdit  purpose = "Edit"
	toWrite purpose = "Write" // missing directories on the way are made
)

// spot opens the directory that contains a path.
func (b *Box) spot(path string, what purpose) (spot, error) {
	g, err := b.ground()
	if err != nil {
		return spot{}, err
	}
	place, err := g.Place(path)
	if err != nil {
		return spot{}, err
	}
	switch {
	case place.Real == place.Root:
		return spot{}, wrong(path, errFolder)
	case what != toRead && !place.Writable:
		return spot{}, wrong(path, errors.New("it is in a read-only directory"))
	}
	s := spot{name: filepath.Base(place.Real), place: place, g: g, fresh: 0o600}
	var folders fs.FileMode
	if what == toWrite {
		folders = 0o700
	}
	if b.Shared {
		s.fresh, folders = 0o666, folders|folders>>3|folders>>6
	}
	if s.dir, err = b.enter(g, string(what), place, nil, filepath.Dir(place.Real), folders); err != nil {
		return spot{}, wrong(path, err)
	}
	return s, nil
}

// down opens a directory below an opened one, which is at the path at. It closes the directories that it leaves.
func down(g policy.Ground, dir *os.Root, at string, names []string, making fs.FileMode) (*os.Root, error) {
	for _, name := range names {
		if making != 0 {
			if err := dir.Mkdir(name, making); err != nil && !errors.Is(err, fs.ErrExist) {
				_ = dir.Close()
				return nil, err
			}
		}
		at = filepath.Join(at, name)
		next, err := step(g, dir, name, at)
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// step opens a directory inside an opened one. at is its path, in which all links were resolved before. A link that is found now was put
// there since, and is not followed.
func step(g policy.Ground, dir *os.Root, name, at string) (*os.Root, error) {
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, notKind(info, "a directory")
	case g.Hides(at, info):
		return nil, errProtected
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = next.Close()
		return nil, errMoved
	}
	return next, nil
}

// openFile opens a regular file for reading. It does not wait for a pipe, and does not open a device.
func openFile(g policy.Ground, dir *os.Root, name, at string) (*os.File, fs.FileInfo, error) {
	info, err := look(g, dir, name, at)
	if err != nil {
		return nil, nil, err
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK: the file may have been replaced by a pipe
	if err != nil {
		return nil, nil, err
	}
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) {
		_ = f.Close()
		return nil, nil, errMoved
	}
	return f, now, nil
}

// look returns the FileInfo of a regular file without opening the file.
func look(g policy.Ground, dir *os.Root, name, at string) (fs.FileInfo, error) {
	info, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, notKind(info, "a file")
	case g.Hides(at, info):
		return nil, errProtected
	}
	return info, nil
}

var errFolder = errors.New("it is a directory")

func notKind(info fs.FileInfo, want string) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errFolder
	case mode&fs.ModeSymlink != 0:
		return errMoved
	case mode&fs.ModeNamedPipe != 0:
		want = "a pipe, not " + want
	case mode&fs.ModeDevice != 0:
		want = "a device, not " + want
	case mode&fs.ModeSocket != 0:
		want = "a socket, not " + want
	default:
		want = "not " + want
	}
	return errors.New("it is " + want)
}

// patient is a reader that stops when ctx ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(data []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.r.Read(data)
}

// nameOf returns a path for the model: relative to the working directory if it is below it.
func nameOf(g policy.Ground, path string) string {
	if rest, ok := strings.CutPrefix(path, g.Dir()+"/"); ok {
		path = rest
	}
	return shown(path)
}

// shown returns a path on one line, because a name may contain any character.
func shown(path string) string {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
