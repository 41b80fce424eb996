package session

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
)

func TestOneForkIsOpen(t *testing.T) {
	b, _ := newBook(t)
	var opened, refused, wrong int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			err := b.OpenFork(t.Context(), Fork{ID: string(rune('a' + i))})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				opened++
			case errors.Is(err, ErrForkOpen):
				refused++
			default:
				wrong++
			}
		})
	}
	all.Wait()
	if opened != 1 || refused != 19 || wrong != 0 {
		t.Errorf("%d opened, %d refused, %d failed", opened, refused, wrong)
	}
}

func TestForkEditsAreNotLost(t *testing.T) {
	b, _ := newBook(t)
	if err := b.OpenFork(t.Context(), Fork{ID: "f"}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := b.EditFork(t.Context(), "f", func(f *Fork) { f.Turns++ }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if f, open, err := b.Fork(t.Context()); !open || err != nil || f.Turns != 50 {
		t.Errorf("%+v, %v, %v", f, open, err)
	}
	if info, err := os.Stat(b.Home.Fork()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestForkOfAnotherIDIsLeftAlone(t *testing.T) {
	b, _ := newBook(t)
	if err := b.EditFork(t.Context(), "f", func(*Fork) {}); !errors.Is(err, ErrNoFork) {
		t.Errorf("none open: %v", err)
	}
	if err := b.OpenFork(t.Context(), Fork{ID: "f"}); err != nil {
		t.Fatal(err)
	}
	if err := b.EditFork(t.Context(), "g", func(*Fork) {}); !errors.Is(err, ErrNoFork) {
		t.Errorf("another open: %v", err)
	}
	if err := b.CloseFork(t.Context(), "g"); err != nil {
		t.Errorf("another open: %v", err)
	}
	if _, open, err := b.Fork(t.Context()); !open || err != nil {
		t.Errorf("open %v, %v", open, err)
	}
	if err := b.CloseFork(t.Context(), "f"); err != nil {
		t.Error(err)
	}
	if _, open, err := b.Fork(t.Context()); open || err != nil {
		t.Errorf("open %v, %v", open, err)
	}
}

func TestSavable(t *testing.T) {
	fork := Fork{ID: "f", Session: "s", Parent: "m", Turns: 1}
	for name, c := range map[string]struct {
		change func(Book, *Fork) error
		want   error
	}{
		"as it began":    {func(Book, *Fork) error { return nil }, nil},
		"main moved":     {func(b Book, _ *Fork) error { return b.SetMain("n") }, ErrMainMoved},
		"main cleared":   {func(b Book, _ *Fork) error { return b.ClearMain() }, ErrMainMoved},
		"main had a run": {func(b Book, _ *Fork) error { return note(b, "run\n") }, ErrMainMoved},
		"main was busy":  {func(_ Book, f *Fork) error { f.MainRun = busyMain; return nil }, ErrMainMoved},
		"of a run":       {func(_ Book, f *Fork) error { f.Run = "r"; return nil }, ErrResumed},
		"without a turn": {func(_ Book, f *Fork) error { f.Turns = 0; return nil }, ErrNoTurn},
	} {
		b, _ := newBook(t)
		f := fork
		if err := errors.Join(b.SetMain("m"), c.change(b, &f)); err != nil {
			t.Fatal(err)
		}
		if err := b.Savable(f); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// note is what a turn of main leaves in the lock's file.
func note(b Book, text string) error {
	guard, err := lock.TryGuard(b.Home.ConversationLock(MainKey))
	if err != nil {
		return err
	}
	defer guard.Release()
	return guard.Note(text)
}

func TestSaveFork(t *testing.T) {
	for _, killed := range []bool{false, true} {
		b, _ := newBook(t)
		f := Fork{ID: "f", Session: "s", Parent: "m", Turns: 1}
		if err := errors.Join(b.SetMain("m"), b.OpenFork(t.Context(), f)); err != nil {
			t.Fatal(err)
		}
		save := func() error { return b.SaveFork(t.Context(), f) }
		if killed { // before anything but the id of main was written
			save = func() error { return b.SetMain("s") }
		}
		if err := save(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, open, err := b.Fork(t.Context()); open || err != nil {
				t.Errorf("killed %v: open %v, %v", killed, open, err)
			}
		}
		events, _ := history(t, b)
		if len(events) != 1 || events[0].Event != Swapped || events[0].SessionID != "s" || events[0].ParentSessionID != "m" {
			t.Errorf("killed %v: history %+v", killed, events)
		}
		if err := b.OpenFork(t.Context(), Fork{ID: "g"}); err != nil {
			t.Errorf("killed %v: %v", killed, err)
		}
	}
}

// TestReadersFinishASave: processes that find a fork whose saver was killed close it together, and log it once.
func TestReadersFinishASave(t *testing.T) {
	b, _ := newBook(t)
	if err := errors.Join(b.OpenFork(t.Context(), Fork{ID: "f", Session: "new", Parent: "old"}), b.SetMain("new")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, open, err := b.Fork(t.Context()); open || err != nil {
				t.Errorf("open %v, %v", open, err)
			}
		})
	}
	all.Wait()
	var events []Event
	for e, err := range b.History(nil) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if len(events) != 1 || events[0].Event != Swapped || events[0].SessionID != "new" || events[0].ParentSessionID != "old" {
		t.Errorf("the history is %+v", events)
	}
}

func TestDamagedForkIsSetAside(t *testing.T) {
	b, warned := newBook(t)
	write(t, b.Home.Fork(), `{"id": "f`)
	if _, open, err := b.Fork(t.Context()); open || err != nil || len(*warned) != 1 {
		t.Errorf("open %v, %v, warned %q", open, err, *warned)
	}
	write(t, b.Home.Fork(), `{}`)
	if err := b.OpenFork(context.Background(), Fork{ID: "f"}); err != nil {
		t.Error(err)
	}
}
