package run

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The home directory of a system user may be unknown, missing, closed to the user, or no directory. Then the caches are files of the run.
func TestPrivateWithoutHome(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "null"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	disk := store.Disk{Now: time.Now, Warn: func(string) {}}
	for _, caches := range []string{"", filepath.Join(root, "missing", ".cache", "ollim"), filepath.Join(root, "null", ".cache", "ollim")} {
		r := &Runner{Disk: disk, Host: Host{Sealing: Sealing{Temp: root, Cache: caches}}}
		w := &sandbox{r: r, run: &runlog.Run{Record: runlog.Record{ID: strconv.Itoa(len(caches))}}}
		temporary, cache := w.private()
		if err := w.makePrivate(temporary, cache); err != nil || filepath.Dir(cache) != temporary {
			t.Errorf("%q: caches in %q, want them in %q: %v", caches, cache, temporary, err)
		}
		if err := r.Host.Sealing.Sweep(t.Context(), runlog.Book{}, time.Now()); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepPrivate(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	home, now := paths.Dir(filepath.Join(root, "data")), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	disk := store.Disk{Now: func() time.Time { return now }, Warn: func(string) {}}
	r := &Runner{
		Home: home, Disk: disk, Zone: time.UTC, Stores: state.Of(home, disk, time.UTC),
		Host: Host{Sealing: Sealing{Temp: filepath.Join(root, "tmp"), Cache: filepath.Join(root, "cache")}},
	}
	const dead, unknown = "20260302T080000.000Z-aaaaaa", "20260302T080000.000Z-bbbbbb"
	if _, err := r.Runs.Open(runlog.Record{ID: dead, Started: now}); err != nil { // no process holds its lock
		t.Fatal(err)
	}
	ages := map[string]time.Duration{
		"tmp/ollim-" + dead + "-1": 0, "tmp/ollim-" + unknown + "-1": 0, "tmp/ollim-123": 0, "tmp/other": 0,
		"cache/routine-old": cacheLife + time.Hour, "cache/routine-new": cacheLife - time.Hour,
	}
	for name, age := range ages {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "cache", "file") // nobody's cache
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, now.Add(-2*cacheLife), now.Add(-2*cacheLife))); err != nil {
		t.Fatal(err)
	}
	ages["cache/file"] = 2 * cacheLife
	if err := r.Host.Sealing.Sweep(t.Context(), r.Runs, now); err != nil {
		t.Fatal(err)
	}
	for name := range ages {
		_, err := os.Lstat(filepath.Join(root, name))
		if gone := err != nil; gone != (name == "tmp/ollim-"+dead+"-1" || name == "cache/routine-old") {
			t.Errorf("%s: removed %v", name, gone)
		}
	}
}

// TestCanary: the file that no sealed program may open is made once, and where that fails nothing is sealed.
func TestCanary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "canary")
	for range 2 {
		if err := makeCanary(path); err != nil {
			t.Error(err)
		}
	}
	if err := makeCanary(filepath.Join(path, "below")); err == nil {
		t.Error("a file below a file is made")
	}
}

// TestPrivateThroughLinks: the agent of a job with rw:~/.cache must not choose what the next run may write.
func TestPrivateThroughLinks(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real, named := filepath.Join(root, "real"), filepath.Join(root, "named")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, named)); err != nil {
		t.Fatal(err)
	}
	w := &sandbox{run: &runlog.Run{}, r: &Runner{
		Disk: store.Disk{Now: time.Now}, Host: Host{Sealing: Sealing{Temp: named, Cache: filepath.Join(named, ".cache", "ollim")}},
	}}
	temporary, cache := w.private()
	if err := w.makePrivate(temporary, cache); err != nil || filepath.Dir(temporary) != real || filepath.Dir(cache) != filepath.Join(real, ".cache", "ollim") {
		t.Fatalf("%s, %s: %v", temporary, cache, err)
	}
	if err := errors.Join(os.Remove(cache), os.Symlink(root, cache)); err != nil {
		t.Fatal(err)
	}
	if temporary, cache := w.private(); cache != filepath.Join(temporary, "cache") {
		t.Errorf("with a link in its place: %s", cache)
	}
	old, all := filepath.Join(root, "old"), filepath.Dir(cache)
	err = errors.Join(os.RemoveAll(all), os.Symlink(root, all), os.Mkdir(old, 0o700), os.Chtimes(old, time.Time{}, time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	if temporary, cache := w.private(); cache != filepath.Join(temporary, "cache") {
		t.Errorf("with a link in place of all: %s", cache)
	}
	if err := w.r.Host.Sealing.Sweep(t.Context(), runlog.Book{}, time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(old); err != nil {
		t.Errorf("what a link leads to is removed: %v", err)
	}
}
