package doctor

import (
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// closed is what the owner cannot read in one directory.
type closed struct {
	n     int
	first string // its path
	info  fs.FileInfo
}

// unreadable looks for files and directories that the owner cannot read, below the directories of state/. It leaves out the records of runs,
// of which the check "runs" reports those that cannot be read, and caches.
func (e *examination) unreadable(ctx context.Context) {
	dir := e.home.Dir
	found := map[string]*closed{}
	_ = filepath.WalkDir(dir.State(), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // the directory has been noted, or has just gone
			return nil //nolint:nilerr // see there
		case path == dir.Runs(), path == dir.State("cache"):
			return fs.SkipDir
		case filepath.Dir(path) == dir.State(), filepath.Dir(path) == dir.Questions(), path == dir.State(): // the checks "modes" and "state" report it
			return nil
		}
		bits := fs.FileMode(0o400)
		if entry.IsDir() {
			bits = 0o700
		}
		info, err := entry.Info()
		if err != nil || info.Mode()&fs.ModeSymlink != 0 || usable(path, info, bits) {
			return nil //nolint:nilerr // it has just gone
		}
		in := filepath.Dir(path)
		if found[in] == nil {
			found[in] = &closed{first: path, info: info}
		}
		found[in].n++
		return nil
	})
	for _, in := range slices.Sorted(maps.Keys(found)) {
		c := found[in]
		mode, path := "600", c.first
		if c.info.IsDir() {
			mode = "700"
		}
		if c.n == 1 {
			e.fail(opening(c.info, mode, path), "%s: you cannot read it (%#o)", path, c.info.Mode().Perm())
			continue
		}
		e.fail(opening(c.info, "-R u+rwX", in), "%s: you cannot read %s in it, such as %s", in, plaintext.Count(c.n, "file"), filepath.Base(path))
	}
}
