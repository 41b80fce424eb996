package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/policy"
)

// deepest is how many directories below its beginning a search goes.
const deepest = 128

// searching is one search.
type searching struct {
	g      policy.Ground
	search policy.Glob
	file   func(dir *os.Root, name, path string) error // what to do with a file that is found; its error ends the search
	only   func(dir *os.Root, name, path string) error // what to do with a file at which the search begins
	closed int                                         // directories that cannot be read
}

// run makes a search of the tool from a path, with links followed.
func (s *searching) run(ctx context.Context, b *Box, tool, path string) (err error) {
	if s.g, err = b.ground(); err != nil {
		return err
	}
	place, err := s.g.Place(path)
	if err != nil {
		return err
	}
	dir, err := b.enter(s.g, tool, place, s.search, place.Real, 0)
	if err == nil {
		defer func() { _ = dir.Close() }()
		return s.all(ctx, dir, place.Real, nil)
	}
	if place.Real == place.Root || errors.Is(err, fs.ErrNotExist) {
		return wrong(path, err)
	}
	above, name := filepath.Dir(place.Real), filepath.Base(place.Real)
	if dir, aboveErr := b.enter(s.g, tool, place, nil, above, 0); aboveErr == nil {
		defer func() { _ = dir.Close() }()
		if _, fileErr := look(s.g, dir, name, place.Real); fileErr == nil {
			return s.only(dir, name, place.Real)
		}
	}
	return wrong(path, err)
}

// all goes through a directory, in the order of names. names lead to it from where the search began, path from the file
// system's root. What is protected is omitted, what version control keeps as well, and links are not followed.
func (s *searching) all(ctx context.Context, dir *os.Root, path string, names []string) error {
	entries, err := fs.ReadDir(dir.FS(), ".") // in the order of names
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
	name, versions := names[len(names)-1], []string{".git", ".hg", ".jj", ".sl", ".svn"}
	if slices.Contains(versions, name) || len(names) > deepest || !s.search.Enters(names) {
		return nil
	}
	next, err := step(s.g, dir, name, path)
	if err != nil {
		if !errors.Is(err, errProtected) && !errors.Is(err, fs.ErrNotExist) {
			s.closed++
		}
		return nil
	}
	defer func() { _ = next.Close() }()
	return s.all(ctx, next, path, names)
}
