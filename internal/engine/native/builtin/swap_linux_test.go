package builtin

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSwapper: while another process swaps a directory for a link to its parent and back, again and again, no write leaves the directory.
func TestSwapper(t *testing.T) {
	const rounds = 300
	h := newFixture(t)
	h.box.Allow = nil
	h.allow(t, "Write(./notes/deep/**)")
	h.box.Open()
	folder, evil := filepath.Join(h.dir, "notes/deep/er"), filepath.Join(h.dir, "notes/deep/evil")
	if err := os.Symlink("..", evil); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, folder, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	})
	written, refused, late := 0, 0, 0
	for range rounds {
		switch r, allowed := h.judged(t, func() {}, "Write", "file_path", "notes/deep/er/new.md", "content", "x"); {
		case !allowed:
			refused++
		case r.IsError:
			late++
		default:
			written++
		}
	}
	close(stop)
	swapper.Wait()
	if _, err := os.Lstat(filepath.Join(h.dir, "notes/new.md")); err == nil {
		t.Error("written outside the folder")
	}
	if written == 0 || refused+late == 0 {
		t.Errorf("%d written, %d refused by the policy, %d by the tool: the swapper did not meet the writer", written, refused, late)
	}
}
