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

// deepest is the number of directory levels that a search descends.
const deepest = 128

// searching is one search.
type searching struct {
	g      policy.Ground
	search policy.Glob
	file   func(dir *os.Root, name, path string) error // called for each file that is found; an error ends the search
	only   func(dir *os.Root, name, path string) error // called if the search begins at a file
	closed int                                         // number of directories that cannot be read
}

// run searches for a tool from a path, whose links are resolved.
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

// all visits a directory in the order of names. names lead to it from the beginning of the search, path from the root of the file system.
// It omits protected paths and the directories of version control, and does not follow links.
func (s *searching) all(ctx context.Context, dir *os.Root, path string, names []string) error {
	entries, err := fs.ReadDir(dir.FS(), ".") // sorted by name
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
