package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/policy"
)

// deepest is how many directories below its beginning a search goes.
const deepest = 128

// searching is one search.
type searching struct {
	g      policy.Ground
	search policy.Search
	file   func(dir *os.Root, name, path string) error // what to do with a file that is found; its error ends the search
	closed int                                         // directories that cannot be read
}

// directory is where a search begins, with links followed. A Grep may begin at a file, then dir is its directory and file its name.
type folder struct {
	dir  *os.Root
	path string // of dir
	file string
}

// begin opens the place that a search of the tool begins at.
func (b *Box) begin(g policy.Ground, tool, path string, search policy.Search) (folder, error) {
	place, err := g.Place(path)
	if err != nil {
		return folder{}, err
	}
	dir, err := b.enter(g, tool, place, search, place.Real, 0)
	if err == nil {
		return folder{dir: dir, path: place.Real}, nil
	}
	if place.Real == place.Root || errors.Is(err, fs.ErrNotExist) {
		return folder{}, wrong(path, err)
	}
	above := filepath.Dir(place.Real)
	if dir, aboveErr := b.enter(g, tool, place, policy.Search{}, above, 0); aboveErr == nil {
		if _, fileErr := look(g, dir, filepath.Base(place.Real), place.Real); fileErr == nil {
			return folder{dir: dir, path: above, file: filepath.Base(place.Real)}, nil
		}
		_ = dir.Close()
	}
	return folder{}, wrong(path, err)
}

// all goes through a directory, in the order of names. names lead to it from where the search began, path from the file
// system's root. What is protected is omitted, what version control keeps as well, and links are not followed.
func (s *searching) all(ctx context.Context, dir *os.Root, path string, names []string) error {
	entries, err := entriesOf(dir)
	if err != nil {
		s.closed++
		return nil //nolint:nilerr // it is counted, and the search goes on elsewhere
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at, below := filepath.Join(path, entry.Name()), append(slices.Clip(names), entry.Name())
		switch {
		case entry.IsDir():
			err = s.below(ctx, dir, at, below)
		case entry.Type().IsRegular() && s.search.Finds(below):
			err = s.file(dir, entry.Name(), at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *searching) below(ctx context.Context, dir *os.Root, path string, names []string) error {
	if name := names[len(names)-1]; versions(name) || len(names) > deepest || !s.search.Enters(names) {
		return nil
	}
	next, err := step(s.g, dir, names[len(names)-1], path)
	if err != nil {
		if !errors.Is(err, errProtected) && !errors.Is(err, fs.ErrNotExist) {
			s.closed++
		}
		return nil
	}
	defer func() { _ = next.Close() }()
	return s.all(ctx, next, path, names)
}

func entriesOf(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// versions reports whether a directory is what version control keeps.
func versions(name string) bool {
	switch name {
	case ".git", ".hg", ".jj", ".sl", ".svn":
		return true
	}
	return false
}
