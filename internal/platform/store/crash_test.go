package store_test

import (
	"bufio"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// crash lets a copy of the test program write and kills it at a random moment.
func crash(t *testing.T, role, path string) {
	t.Helper()
	cmd := testkit.Child(t, role, path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(rand.IntN(4_000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

const crashes = 30

func TestKilledReplaceIsOldOrNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for range crashes {
		crash(t, "replace", path)
		if data := []byte(read(t, path)); !whole(data) {
			t.Fatalf("%d bytes of a mixture", len(data))
		}
	}
	others(t, dir, func(name string) bool { return name == "f" })
}

func TestKilledCreateIsThereWholeOrNot(t *testing.T) {
	for range crashes {
		dir := t.TempDir()
		crash(t, "create", filepath.Join(dir, "f"))
		others(t, dir, func(name string) bool {
			if !strings.HasPrefix(name, "f-") {
				return false
			}
			if data := []byte(read(t, filepath.Join(dir, name))); !whole(data) {
				t.Fatalf("%s: %d bytes of a mixture", name, len(data))
			}
			return true
		})
	}
}

// others fails for a file that is not one of ours and does not look like what a killed writer leaves, which every reader
// of a directory knows by its dot.
func others(t *testing.T, dir string, ours func(name string) bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name := e.Name()
		left := strings.HasPrefix(name, ".f") && strings.Contains(name, ".tmp-")
		if err == nil && path != dir && !left && !ours(name) {
			return errors.New("what is " + path + "?")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestKilledAppendSpoilsNothing(t *testing.T) {
	dir := t.TempDir()
	for range crashes {
		path := filepath.Join(dir, "f.jsonl")
		crash(t, "append", path)
		before, bad := numbers(t, path)
		if len(before) == 0 || !inOrder(before) || bad > 1 {
			t.Fatalf("%d lines and %d bad", len(before), bad)
		}
		if err := store.AppendJSON(path, store.Buffered, entry{N: len(before)}); err != nil {
			t.Fatal(err)
		}
		after, still := numbers(t, path)
		if len(after) != len(before)+1 || !inOrder(after) || still != bad {
			t.Fatalf("%d lines and %d bad, then %d and %d", len(before), bad, len(after), still)
		}
		if err := store.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// inOrder reports whether a list is 0, 1, 2 and so on.
func inOrder(list []int) bool {
	for i, n := range list {
		if i != n {
			return false
		}
	}
	return true
}
