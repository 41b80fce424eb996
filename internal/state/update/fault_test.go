package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// try lets another process, which cannot write, do everything, and checks that nothing has changed.
func (w *world) try(part, name string, want ...string) {
	w.t.Helper()
	before := w.snapshot()
	cmd := testkit.Child(w.t.(*testing.T), part, string(w.Home), name)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != strings.Join(want, "\n") {
		w.t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if after := w.snapshot(); fmt.Sprint(after) != fmt.Sprint(before) {
		w.t.Errorf("changed from\n%v\nto\n%v", before, after)
	}
}

// readOnly takes the right to write from everybody but root, whose child drops its rights.
func (w *world) readOnly() {
	w.t.Helper()
	if err := os.Chmod(filepath.Dir(string(w.Home)), 0o755); err != nil { // the child must get there
		w.t.Fatal(err)
	}
	_ = filepath.WalkDir(string(w.Home), func(path string, e os.DirEntry, err error) error {
		mode := os.FileMode(0o444)
		if e.IsDir() {
			mode = 0o555
		}
		return errors.Join(err, os.Chmod(path, mode))
	})
	w.t.Cleanup(func() {
		_ = filepath.WalkDir(string(w.Home), func(path string, _ os.DirEntry, _ error) error {
			return os.Chmod(path, 0o700)
		})
	})
}

func TestReadOnlyDirectory(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"never claimed": func(*world) {},
		"no lock file": func(w *world) {
			_ = os.Remove(w.Home.Lock("ledger"))
		},
		"no locks":      func(w *world) { _ = os.RemoveAll(w.Home.Locks()) },
		"no checkpoint": func(w *world) { _ = os.Remove(w.Home.State("checkpoint.json")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addN(1, 3)
			prepare(w)
			w.readOnly()
			w.try("nobody", "x", "peek: 1 2 3", "pop: not locked", "add: not locked", "clear: not locked")
		})
	}
}

func TestReadOnlyDirectoryWithAClaim(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 3)
	w.crash(w.pop(Owner{}))
	w.readOnly() // nobody can find out whether its owner lives
	w.try("nobody", "x", "peek: ", "pop: not locked", "add: not locked", "clear: not locked")
}

func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 12)
	w.try("full", "0", "peek: (3) 4 5 6 7 8 9 10 11 12", "pop: not written", "add: not written", "clear: not written")
	if files := w.claims(); len(files) != 0 {
		t.Errorf("left %+v", files)
	}
	w.crash(w.pop(Owner{}))
	w.try("full", "0", "peek: not written", "pop: not written", "add: not written", "clear: not written")
	w.expect("(3) 4 5 6 7 8 9 10 11 12")
	w.account("after a full disk", numbers(1, 12))
}

// What could not be marked as used is pending again.
func TestDeliverWithoutSpace(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("long", 400)
	w.add(long, long+"er")
	out, err := testkit.Child(t, "full", string(w.Home), "2000").Output() // there is space for small changes
	want := "peek: " + long + " " + long + "er\npop: \ndeliver: not written\nreturn: not written\nadd: \nclear: \n"
	if string(out) != want || err != nil {
		t.Fatalf("got\n%s\nwant\n%s%v", out, want, err)
	}
	w.expect(long + " " + long + "er")
	w.account("after a full disk", []string{long, long + "er", "new"})
}

// A file that cannot be written keeps an update from being added where it is the first, and is brought up to date later where it is not.
func TestFileThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	file := w.Home.PendingUpdates()
	block := func() {
		w.t.Helper()
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		w.put(filepath.Join(file, "x"), "neither to be removed nor to be replaced")
	}
	block()
	if err := w.Add(context.Background(), "a", "owner"); err == nil {
		t.Error("no error")
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	w.expect("")
	w.add("a", "b")
	former := w.read(file)
	err := w.change(context.Background(), store.Synced, Owner{}, "", func(o *opened) error {
		block()
		return o.add(added{Update{TS: o.nextTS("c"), Message: "c"}})
	})
	if err != nil || len(w.warned) != 1 || !strings.Contains(w.warned[0], "does not show the pending updates") {
		t.Errorf("%v, warned %q", err, w.warned)
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	w.put(file, former)
	w.expect("a b c")
	w.add("d")
	if n := strings.Count(w.read(file), `"message"`); n != 4 {
		t.Errorf("the file has %d updates", n)
	}
}

func TestWithoutLocks(t *testing.T) {
	w := newWorld(t)
	w.put(w.Home.Locks(), "a file where the folder should be")
	w.put(w.Home.PendingUpdates(), `[{"ts":"2026-11-21T08:00:00Z","message":"a"}]`)
	w.expect("a")
	var failed *lock.Failed
	if err := w.Add(context.Background(), "b", "owner"); !errors.As(err, &failed) {
		t.Errorf("Add: %v", err)
	}
	if _, err := w.Pop(context.Background(), Owner{}); !errors.As(err, &failed) {
		t.Errorf("Pop: %v", err)
	}
	w.expect("a")
}

func TestBusyBox(t *testing.T) {
	w := newWorld(t)
	held, err := lock.Try(w.Home.Lock("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Add(ctx, "a", "owner"); !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Add: %v, want the end of the wait", err)
	}
}
