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
			_ = os.Remove(w.Home.Lock("pending_updates"))
		},
		"no locks":           func(w *world) { _ = os.RemoveAll(w.Home.Locks()) },
		"empty claim folder": func(w *world) { _ = store.MkdirAll(w.Home.UpdateClaims()) },
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
	w.readOnly()
	w.try("nobody", "x", "peek: not locked", "pop: not locked", "add: not locked", "clear: not locked")
}

func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 12)
	w.try("full", "0", "peek: (3) 4 5 6 7 8 9 10 11 12", "pop: not written", "add: not written", "clear: not written")
	if files := w.claims(); len(files) != 0 {
		t.Errorf("left %q", files)
	}
	w.crash(w.pop(Owner{}))
	w.try("full", "0", "peek: not written", "pop: not written", "add: not written", "clear: not written")
	w.expect("(3) 4 5 6 7 8 9 10 11 12")
	w.account("after a full disk", numbers(1, 12))
}

// What has been used stays used when the archive cannot be written, and is archived as soon as it can.
func TestDeliverWithoutSpaceForTheArchive(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 9)
	limit := fmt.Sprint(len(w.read(w.Home.UpdateArchive())) + 250) // two lines fit, and the box itself
	cmd := testkit.Child(t, "full", string(w.Home), limit)
	out, err := cmd.Output()
	want := "peek: 1 2 3 4 5 6 7 8 9\npop: \ndeliver: not written\nreturn: not written\nadd: not written\nclear: not written\n"
	if string(out) != want || err != nil {
		t.Fatalf("got\n%s\nwant\n%s%v", out, want, err)
	}
	w.expect("")
	w.expectFates("1 popped r", "2 popped r", "3 popped r", "4 popped r", "5 popped r", "6 popped r", "7 popped r",
		"8 popped r", "9 popped r")
	if n := strings.Count(w.read(w.Home.UpdateArchive()), becamePopped); n != 9 {
		t.Errorf("%d lines, want 9", n)
	}
}

func TestPopWithoutAPlaceForTheClaim(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 2)
	w.put(w.Home.UpdateClaims(), "a file where the folder should be")
	before := w.snapshot()
	if _, err := w.Pop(context.Background(), Owner{}); err == nil {
		t.Fatal("no error")
	}
	if fmt.Sprint(w.snapshot()) != fmt.Sprint(before) {
		t.Error("changed")
	}
}

// A pop that fails half way and cannot even be undone is undone by the next caller, although its owner is alive.
func TestPopThatCannotBeUndone(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 12)
	array := w.Home.PendingUpdates()
	o, err := w.open(context.Background(), Owner{}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(array); err != nil {
		t.Fatal(err)
	}
	w.put(filepath.Join(array, "x"), "neither to be removed nor to be replaced")
	_, _, err = o.take(claimFile{Run: "r", Lock: w.guard().File().Name()})
	o.close()
	if kind(err) != "not written" {
		t.Errorf("take: %v", err)
	}
	if err := os.RemoveAll(array); err != nil {
		t.Fatal(err)
	}
	w.started["r"] = true
	w.expect("(3) 4 5 6 7 8 9 10 11 12")
	w.account("after a failed pop", numbers(1, 12))
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
	held, err := lock.Try(w.Home.Lock("pending_updates"))
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
