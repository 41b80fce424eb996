package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Bounds of a data directory. A busy one adds some MB a day, most of which goes after keep.runs.
const (
	muchBytes   = 2 << 30
	muchFiles   = 200_000
	growthDays  = 7
	keepRemedy  = "keep less: ollim config set keep.runs 30d (and keep.idle, keep.transcripts, keep.history: ollim config list)"
	largestPart = 3 // number of parts that are named
)

// part is what one directory of state/, or all transcripts, holds.
type part struct {
	name         string
	files, bytes int64
	grown        int64 // bytes of files that were written in the last week
}

// growth checks the size of the data directory, and names its largest parts with their daily growth.
func (e *examination) growth(ctx context.Context) string {
	parts, err := e.parts(ctx)
	e.fault(err, "")
	var files, bytes int64
	var named []string
	for i, p := range parts {
		if files, bytes = files+p.files, bytes+p.bytes; i < largestPart && p.bytes > 0 {
			named = append(named, fmt.Sprintf("%s %s, %s a day", p.name, mebibytes(p.bytes), mebibytes(p.grown/growthDays)))
		}
	}
	text := fmt.Sprintf("%s in %s; %s", mebibytes(bytes), plaintext.Count(int(files), "file"), strings.Join(named, "; "))
	if bytes > muchBytes || files > muchFiles {
		e.warn(keepRemedy, "%s", text)
	}
	return strings.TrimSuffix(text, "; ")
}

// parts returns what grows, the largest first. A file that is replaced as a whole counts as grown by its size.
func (e *examination) parts(ctx context.Context) ([]part, error) {
	dir, week := e.home.Dir, e.App.Now().Add(-growthDays*24*time.Hour)
	sums := map[string]*part{}
	for _, top := range []string{dir.State(), dir.Sessions()} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if path == dir.Runs() {
				return fs.SkipDir
			}
			if err != nil || entry.IsDir() {
				return nil //nolint:nilerr // other checks report what cannot be read; the rest has just gone
			}
			info, err := entry.Info()
			if err != nil {
				return nil //nolint:nilerr // it has just gone
			}
			name := partOf(dir.Path(), path)
			if sums[name] == nil {
				sums[name] = &part{name: name}
			}
			p := sums[name]
			p.files, p.bytes = p.files+1, p.bytes+info.Size()
			if info.ModTime().After(week) {
				p.grown += info.Size()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	all, recent, err := e.home.Runs.Sizes(week)
	if err != nil {
		return nil, err
	}
	parts := []part{{name: partOf(dir.Path(), dir.Runs()), files: all.Files, bytes: all.Bytes, grown: recent.Bytes}}
	for _, p := range sums {
		parts = append(parts, *p)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name)) })
	return parts, nil
}

// partOf returns the name of the part that a file belongs to: state/runs, state/ledger, sessions.
func partOf(home, path string) string {
	name, err := filepath.Rel(home, path)
	words := strings.Split(name, string(filepath.Separator))
	if err != nil || words[0] != "state" {
		return words[0]
	}
	return strings.Join(words[:min(2, len(words))], "/")
}

func mebibytes(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
