package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// small mounts a file system of 64 kB for the test.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,nr_inodes=12,mode=700")
	if err != nil {
		testkit.Missing(t, "a small file system cannot be mounted: run the tests as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// full fails unless err says that the disk is full and names the file.
func full(t *testing.T, err error, path string) {
	t.Helper()
	var failed *store.NotWritten
	if !errors.As(err, &failed) || !errors.Is(err, syscall.ENOSPC) || failed.Path != path {
		t.Errorf("%v", err)
		return
	}
	if want := path + ": not written: no space left on device"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

func TestFullDisk(t *testing.T) {
	dir := small(t)
	path := filepath.Join(dir, "f")
	old := strings.Repeat("old ", 6_000)
	if err := store.Replace(path, []byte(old)); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("new ", 15_000)
	full(t, store.Replace(path, []byte(big)), path)
	full(t, store.WriteJSON(path, big, store.Synced), path)
	full(t, store.Create(filepath.Join(dir, "g"), []byte(big)), filepath.Join(dir, "g"))
	if got := read(t, path); got != old {
		t.Errorf("the old file has %d bytes, want %d", len(got), len(old))
	}
	only(t, dir, "f")

	d, _ := disk()
	list := filepath.Join(dir, "list")
	if err := store.WriteJSON(list, []string{"a"}, store.Synced); err != nil {
		t.Fatal(err)
	}
	before := read(t, list)
	err := store.EditJSON(context.Background(), d, filepath.Join(dir, "lock"), list, func(v *[]string) error {
		*v = append(*v, big)
		return nil
	})
	full(t, err, list)
	if got := read(t, list); got != before {
		t.Errorf("%q, want %q", got, before)
	}
	only(t, dir, "f", "list", "lock")
}

func TestFullDiskAppend(t *testing.T) {
	for name, text := range map[string]string{"whole": "{\"n\":1}\n", "torn": "{\"n\":1}\n{\"n\":"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(small(t), "f.jsonl")
			write(t, path, text)
			big := entry{2, strings.Repeat("x", 100_000)}
			for _, d := range []store.Durability{store.Synced, store.Buffered} {
				full(t, store.AppendJSON(path, d, big), path)
				if got := read(t, path); got != text {
					t.Fatalf("%d bytes, want the %d from before", len(got), len(text))
				}
			}
			if err := store.AppendJSON(path, store.Synced, entry{N: 3}); err != nil { // a small one still fits
				t.Fatal(err)
			}
			if got, _ := numbers(t, path); len(got) != 2 || got[1] != 3 {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestNoInodesLeft(t *testing.T) {
	dir := small(t)
	path := filepath.Join(dir, "f")
	write(t, path, "old")
	for i := 0; ; i++ {
		f, err := os.Create(filepath.Join(dir, "filler"+string(rune('a'+i))))
		if err != nil {
			break
		}
		_ = f.Close()
	}
	full(t, store.Replace(path, []byte("new")), path)
	full(t, store.Create(filepath.Join(dir, "g"), nil), filepath.Join(dir, "g"))
	full(t, store.AppendJSON(filepath.Join(dir, "h"), store.Synced, 1), filepath.Join(dir, "h"))
	full(t, store.MkdirAll(filepath.Join(dir, "i")), filepath.Join(dir, "i"))
	if got := read(t, path); got != "old" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "h")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("h: %v", err)
	}
	if err := store.Remove(path); err != nil { // making room needs none
		t.Error(err)
	}
}
