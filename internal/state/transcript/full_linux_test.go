package transcript_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		testkit.Missing(t, "a small file system cannot be mounted: run the tests as root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	f := begin(t, dir, "n-1", user("one"))
	before := read(t, f.Path)
	big := entries(user(strings.Repeat("x", 30_000)), agent(strings.Repeat("y", 40_000)))
	for _, torn := range []string{"", `{"type":"mess`} {
		write(t, f.Path, before+torn)
		for _, d := range []store.Durability{store.Synced, store.Buffered} {
			err := f.Append(d, big...)
			if !errors.As(err, new(*store.NotWritten)) || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%v", err)
			}
			if got := read(t, f.Path); got != before {
				t.Fatalf("%d bytes, want the %d from before", len(got), len(before))
			}
		}
	}
	if err := f.Append(store.Buffered, big[1]); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func() (transcript.Transcript, error){
		"branch": func() (transcript.Transcript, error) { return branch(dir, f, -1, header("n-2")) },
		"compaction": func() (transcript.Transcript, error) {
			return compact(dir, f, strings.Repeat("z", 50_000), 0, header("n-3"))
		},
	} {
		if _, err := make(); !errors.As(err, new(*store.NotWritten)) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := names(t, folder(dir, header("").Cwd)); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
