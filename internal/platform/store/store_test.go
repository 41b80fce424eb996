package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "folder", "f")
	for _, data := range []string{"one", "", strings.Repeat("long", 100_000), "two"} {
		if err := store.Replace(path, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != data {
			t.Fatalf("%d bytes, want %d", len(got), len(data))
		}
		permissions(t, path, 0o600)
	}
	permissions(t, filepath.Dir(path), 0o700)
	permissions(t, filepath.Join(dir, "new"), 0o700)
	only(t, filepath.Dir(path), "f")
}

func TestReplaceKeepsPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, mode := range []fs.FileMode{0o644, 0o600, 0o755, 0o400} {
		write(t, path, "old")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := store.Replace(path, []byte("new")); err != nil {
			t.Fatal(err)
		}
		permissions(t, path, mode)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReplaceFollowsLinks(t *testing.T) {
	for name, tc := range map[string]struct {
		exists bool
		links  map[string]string
		target string
	}{
		"absolute":             {true, map[string]string{"f": "DIR/real/f"}, "real/f"},
		"relative":             {true, map[string]string{"f": "real/f"}, "real/f"},
		"twice":                {true, map[string]string{"f": "real/g", "real/g": "../other/h"}, "other/h"},
		"folder":               {true, map[string]string{"link": "real"}, "real/f"},
		"up from a link":       {true, map[string]string{"f": "real/to/../h", "real/to": "../other/deep"}, "other/h"},
		"absolute, up":         {true, map[string]string{"f": "DIR/real/to/../h", "real/to": "../other/deep"}, "other/h"},
		"to nothing yet":       {false, map[string]string{"f": "real/f"}, "real/f"},
		"twice to nothing yet": {false, map[string]string{"f": "real/g", "real/g": "../other/h"}, "other/h"},
		"to no folder yet":     {false, map[string]string{"f": "DIR/real/deep/f"}, "real/deep/f"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, folder := range []string{"real", "other/deep"} {
				if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			target := filepath.Join(dir, tc.target)
			if tc.exists {
				write(t, target, "old")
				if err := os.Chmod(target, 0o640); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, "f")
			for link, to := range tc.links {
				if err := os.Symlink(strings.Replace(to, "DIR", dir, 1), filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
				if link == "link" {
					path = filepath.Join(dir, "link", "f")
				}
			}
			if err := store.Replace(path, []byte("new")); err != nil {
				t.Fatal(err)
			}
			if got := read(t, target); got != "new" {
				t.Errorf("the file at the end holds %q", got)
			}
			permissions(t, target, map[bool]fs.FileMode{true: 0o640, false: 0o600}[tc.exists])
			for link := range tc.links {
				if info, err := os.Lstat(filepath.Join(dir, link)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
					t.Errorf("%s is no link any more: %v, %v", link, info.Mode(), err)
				}
			}
		})
	}
}

func TestReplaceRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{
		"file/f": "not a directory", "folder": "file exists", "loop": "too many levels of symbolic links",
	} {
		path = filepath.Join(dir, path)
		err := store.Replace(path, []byte("new"))
		var failed *store.NotWritten
		if !errors.As(err, &failed) || failed.Path != path {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if want := path + ": not written: " + reason; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	only(t, dir, "file", "folder", "loop")
	only(t, filepath.Join(dir, "folder"))
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "f")
	if err := store.Create(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	permissions(t, path, 0o600)
	err := store.Create(path, []byte("two"))
	if !errors.Is(err, fs.ErrExist) || errors.As(err, new(*store.NotWritten)) {
		t.Errorf("the second time: %v", err)
	}
	if got := read(t, path); got != "one" {
		t.Errorf("it holds %q", got)
	}
	only(t, filepath.Dir(path), "f")

	link := filepath.Join(dir, "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(link, []byte("x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a link to nothing has the name too: %v", err)
	}
	if err := store.Create(filepath.Join(path, "x"), nil); !errors.As(err, new(*store.NotWritten)) || errors.Is(err, fs.ErrExist) {
		t.Errorf("below a file: %v", err)
	}
}

func TestOnlyOneCreates(t *testing.T) {
	dir := t.TempDir()
	for round := range 20 {
		path := filepath.Join(dir, "f")
		var made atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				err := store.Create(path, content(i))
				switch {
				case err == nil:
					made.Add(1)
				case !errors.Is(err, fs.ErrExist):
					t.Error(err)
				}
				if data, err := os.ReadFile(path); err != nil || !whole(data) {
					t.Errorf("round %d: somebody reads %d bytes, %v", round, len(data), err)
				}
			})
		}
		all.Wait()
		if made.Load() != 1 {
			t.Fatalf("round %d: %d made it", round, made.Load())
		}
		only(t, dir, "f")
		if err := store.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write(t, path, "x")
	for range 2 {
		if err := store.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Remove(filepath.Join(dir, "none", "f")); err != nil {
		t.Errorf("in a folder that is not there: %v", err)
	}
	only(t, dir)
	write(t, filepath.Join(dir, "real"), "x")
	if err := os.Symlink("real", path); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(path); err != nil {
		t.Fatal(err)
	}
	only(t, dir, "real")
	write(t, filepath.Join(dir, "folder", "f"), "x")
	if err := store.Remove(filepath.Join(dir, "folder")); !errors.As(err, new(*store.NotWritten)) {
		t.Errorf("a folder that is not empty: %v", err)
	}
}

func TestSetAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.json")
	for _, data := range []string{"one", "two", "three"} { // in the same microsecond
		write(t, path, data)
		aside, err := store.SetAside(path, noon())
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, aside); got != data {
			t.Errorf("%s holds %q, want %q", aside, got, data)
		}
	}
	only(t, dir, "f.json.corrupt-20260224T110000.123456Z", "f.json.corrupt-20260224T110000.123457Z", "f.json.corrupt-20260224T110000.123458Z")
	if _, err := store.SetAside(path, noon()); !errors.As(err, new(*store.NotWritten)) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if err := store.MkdirAll(filepath.Join(dir, "a", "b")); err != nil {
			t.Fatal(err)
		}
	}
	permissions(t, filepath.Join(dir, "a"), 0o700)
	permissions(t, filepath.Join(dir, "a", "b"), 0o700)
	write(t, filepath.Join(dir, "f"), "x")
	err := store.MkdirAll(filepath.Join(dir, "f"))
	if !errors.As(err, new(*store.NotWritten)) || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("over a file: %v", err)
	}
}

// TestList: a missing directory is empty; a file in its place is an error.
func TestList(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b"), "")
	write(t, filepath.Join(dir, "a"), "")
	for path, want := range map[string]int{dir: 2, filepath.Join(dir, "none"): 0, filepath.Join(dir, "a"): -1} {
		entries, err := store.List(path)
		if (err != nil) != (want < 0) || len(entries) != max(want, 0) || want == 2 && entries[0].Name() != "a" {
			t.Errorf("%s: %v, %v", path, entries, err)
		}
	}
}

// An agent may leave directories without rights, and links to elsewhere.
func TestRemoveAll(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir, kept := filepath.Join(root, "tmp"), filepath.Join(root, "kept")
	for _, path := range []string{filepath.Join(dir, "closed", "deep"), kept} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "0"), nil, 0o600), os.Mkdir(filepath.Join(dir, "1"), 0o700),
		os.WriteFile(filepath.Join(kept, "x"), nil, 0o600), os.Symlink(kept, filepath.Join(dir, "link")),
		os.WriteFile(filepath.Join(dir, "closed", "deep", "x"), nil, 0o600),
		os.Chmod(filepath.Join(dir, "closed", "deep"), 0), os.Chmod(filepath.Join(dir, "closed"), 0o100),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.RemoveAll(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Lstat(filepath.Join(kept, "x")); err != nil {
		t.Error(err)
	}
}

// An agent may nest directories deeper than a path is long, and than a process has descriptors.
func TestRemoveDeep(t *testing.T) {
	t.Parallel()
	const depth = 5_000
	dir := filepath.Join(t.TempDir(), "tmp")
	at, err := os.OpenRoot(filepath.Dir(dir))
	if err == nil {
		err = at.Mkdir("tmp", 0o700)
	}
	for i, name := 0, "tmp"; err == nil && i < depth; i, name = i+1, "d" {
		var below *os.Root
		if below, err = at.OpenRoot(name); err == nil {
			err = errors.Join(at.Close(), below.Mkdir("d", 0o700))
			at = below
		}
	}
	if err := errors.Join(err, at.Close()); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(stopped)
	if err := store.RemoveAll(ctx, dir); !errors.Is(err, stopped) {
		t.Errorf("after the end of its context: %v", err)
	}
	begun := &counted{Context: context.Background(), left: depth}
	if err := store.RemoveAll(begun, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped half way: %v", err)
	}
	whole := &counted{Context: context.Background(), left: 10 * depth} // no more than so many looks: the time grows with the number of entries
	if err := store.RemoveAll(whole, dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// The end of a run's context must not keep what the run leaves.
func TestDiscard(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tmp")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), store.Discard(ctx, dir))
	if _, statErr := os.Lstat(dir); err != nil || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("it is still there: %v, %v", err, statErr)
	}
}

// counted is a context that ends when it was asked so often whether it has.
type counted struct {
	context.Context
	left int
}

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}
