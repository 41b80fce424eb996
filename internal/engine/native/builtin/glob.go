package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/policy"
)

// globFiles is the number of files that are listed at most.
const globFiles = 200

func callGlob(ctx context.Context, b *Box, input json.RawMessage) (string, error) {
	in := struct {
		Path string `json:"path"`
	}{"."}
	if err := decode(input, &in); err != nil {
		return "", err
	}
	search, err := policy.Searched("Glob", input)
	if err != nil {
		return "", badInput(err)
	}
	return soon(ctx, func(ctx context.Context) (string, error) { return b.glob(ctx, in.Path, search) })
}

func (b *Box) glob(ctx context.Context, path string, search policy.Glob) (string, error) {
	type found struct {
		path string
		at   time.Time
	}
	var files []found
	s := searching{search: search}
	s.file = func(dir *os.Root, name, at string) error {
		if info, err := look(s.g, dir, name, at); err == nil {
			files = append(files, found{at, info.ModTime()})
		}
		return nil
	}
	s.only = func(*os.Root, string, string) error {
		return fmt.Errorf("%s: it is a file, not a directory", shown(path))
	}
	if err := s.run(ctx, b, "Glob", path); err != nil {
		return "", err
	}
	slices.SortStableFunc(files, func(a, b found) int { return cmp.Or(b.at.Compare(a.at), strings.Compare(a.path, b.path)) })
	var lines []string
	for _, f := range files[:min(len(files), globFiles)] {
		lines = append(lines, nameOf(s.g, f.path))
	}
	if len(files) > globFiles {
		lines = append(lines, fmt.Sprintf("(the newest %d of %d files)", globFiles, len(files)))
	}
	if len(files) == 0 {
		lines = append(lines, "(no file found)")
	}
	return strings.Join(append(lines, s.unread()...), "\n"), nil
}

// unread returns notes about what a search could not read.
func (s *searching) unread() []string {
	switch s.closed {
	case 0:
		return nil
	case 1:
		return []string{"(1 directory could not be read)"}
	}
	return []string{fmt.Sprintf("(%d directories could not be read)", s.closed)}
}
