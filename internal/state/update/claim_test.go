package update

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

func TestPopOfNothing(t *testing.T) {
	w := newWorld(t)
	c := w.pop(Owner{Run: "r"})
	if c == nil || len(c.Updates) != 0 {
		t.Fatalf("got %+v", c)
	}
	w.deliver(c)
	w.giveBack(c)
	if d := w.snapshot(); len(d) != 0 {
		t.Errorf("wrote %v", d)
	}
}

func TestPopTakesEverything(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 11)
	c := w.pop(Owner{Run: "r"})
	if got := brief(c.Updates); got != "(2) 3 4 5 6 7 8 9 10 11" {
		t.Errorf("popped %q", got)
	}
	if ok, _ := exists(w.Home.PendingUpdates()); ok {
		t.Error("the array is still there")
	}
	w.expect("")
	w.add("12")
	w.deliver(c)
	w.expect("12")
	if files := w.claims(); len(files) != 0 {
		t.Errorf("left %q", files)
	}
	w.expectFates("1 dropped", "2 dropped", "(2) popped r", "3 popped r", "4 popped r", "5 popped r", "6 popped r",
		"7 popped r", "8 popped r", "9 popped r", "10 popped r", "11 popped r")
}

func TestClaimFile(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	g := w.guard()
	w.pop(Owner{Run: "r1", Lock: g.File().Name()})
	var file map[string]any
	if err := json.Unmarshal([]byte(w.read(filepath.Join(w.Home.UpdateClaims(), w.claims()[0]))), &file); err != nil {
		t.Fatal(err)
	}
	if file["run"] != "r1" || file["lock"] != w.Home.SessionLock("") || file["at"] != "2026-11-21T13:00:02.000000+01:00" {
		t.Errorf("claim file %v", file)
	}
}

func TestReturnKeepsOrderAndCount(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 11)
	c := w.pop(Owner{})
	w.addN(12, 13)
	w.giveBack(c)
	w.expect("(4) 5 6 7 8 9 10 11 12 13")
	w.giveBack(c)
	w.expect("(4) 5 6 7 8 9 10 11 12 13")
	w.expectFates("1 dropped", "2 dropped", "3 dropped", "4 dropped")
	if err := c.Deliver(context.Background()); !errors.Is(err, errReturned) {
		t.Errorf("Deliver after Return: %v, want ErrReturned", err)
	}
}

func TestReturnsAddTheirCounts(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 11)
	a := w.pop(Owner{})
	w.addN(12, 23)
	b := w.pop(Owner{})
	w.addN(24, 24)
	w.giveBack(b)
	w.expect("(4) 16 17 18 19 20 21 22 23 24")
	w.giveBack(a)
	w.expect("(15) 16 17 18 19 20 21 22 23 24")
}

func TestReturnToAnEmptyBox(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 11)
	before := w.read(w.Home.PendingUpdates())
	w.giveBack(w.pop(Owner{}))
	if got := w.read(w.Home.PendingUpdates()); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
}

func TestDeliverIsOnce(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	c := w.pop(Owner{Run: "r"})
	w.deliver(c)
	w.deliver(c)
	w.giveBack(c)
	w.expect("")
	w.expectFates("a popped r")
	if err := os.RemoveAll(w.Home.Locks()); err != nil {
		t.Fatal(err)
	}
	w.put(w.Home.Locks(), "no lock can be taken")
	w.deliver(c)
	w.giveBack(c)
}

func TestReturnIsForGood(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	c := w.pop(Owner{Run: "r1"})
	w.giveBack(c)
	w.deliver(w.pop(Owner{Run: "r2"}))
	if err := c.Deliver(context.Background()); !errors.Is(err, errReturned) {
		t.Errorf("Deliver of what another run has used: %v, want ErrReturned", err)
	}
	w.expectFates("a popped r2")
}

func TestSettledClaimsHoldNoFiles(t *testing.T) {
	w := newWorld(t)
	var claims []*Claim
	before := openFiles(t)
	for i := range 20 {
		w.add("a")
		c := w.pop(Owner{})
		if i%2 == 0 {
			w.deliver(c)
		} else {
			w.giveBack(c)
		}
		claims = append(claims, c)
	}
	if after := openFiles(t); after > before+5 {
		t.Errorf("%d open files, %d before, with %d claims", after, before, len(claims))
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		testkit.Missing(t, "no /proc: mount -t proc proc /proc, on Linux: %v", err)
	}
	return len(list)
}

func TestSettleFromManyGoroutines(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	c := w.pop(Owner{Run: "r"})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { _ = c.Deliver(context.Background()) })
		group.Go(func() { _ = c.Return(context.Background()) })
	}
	group.Wait()
	_, err := w.Peek(context.Background())
	if files := w.claims(); err != nil || len(files) != 0 {
		t.Errorf("left %q, %v", files, err)
	}
	if box, archive := w.peek(), w.read(w.Home.UpdateArchive()); (box == "a") == strings.Contains(archive, becamePopped) {
		t.Errorf("box %q and archive %q", box, archive)
	}
}

// A run that is interrupted settles its claim with the context that was cancelled.
func TestSettleAfterTheContext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	w.add("a")
	c := w.pop(Owner{})
	cancel()
	for range 20 {
		if err := c.Return(ctx); err != nil {
			t.Fatal(err)
		}
		w.expect("a")
		c = w.pop(Owner{})
	}
	if err := c.Deliver(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestLiveClaimIsLeftAlone(t *testing.T) {
	for _, owner := range []string{"person", "run"} {
		t.Run(owner, func(t *testing.T) {
			w := newWorld(t)
			o := Owner{}
			if owner == "run" {
				o = Owner{Run: "r", Lock: w.guard().File().Name()}
			}
			w.add("a")
			c := w.pop(o)
			w.started["r"] = true
			w.add("b")
			w.expect("b")
			if got := brief(w.pop(Owner{}).Updates); got != "b" {
				t.Errorf("popped %q", got)
			}
			w.deliver(c)
		})
	}
}

func TestDeadClaim(t *testing.T) {
	for _, tt := range []struct {
		name    string
		run     string
		session bool
		started bool
		want    string
	}{
		{"person", "", false, false, "a b"},
		{"run without a session", "r", false, false, "a b"},
		{"started run without a session", "r", false, true, "b"},
		{"run", "r", true, false, "a b"},
		{"started run", "r", true, true, "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.add("a")
			owner := Owner{Run: tt.run}
			if tt.session {
				owner.Lock = w.Home.SessionLock("")
			}
			g := w.guard()
			c := w.pop(owner)
			w.started["r"] = tt.started
			if tt.session {
				g.Release()
			} else {
				w.crash(c)
			}
			w.add("b")
			w.expect(tt.want)
			if files := w.claims(); len(files) != 0 {
				t.Errorf("left %q", files)
			}
			if tt.started {
				w.expectFates("a popped r")
			}
		})
	}
}

// The next turn of a conversation holds the session lock that the dead one held.
func TestNextHolderOfTheSessionRecovers(t *testing.T) {
	w := newWorld(t)
	g := w.guard()
	w.add("a")
	w.pop(Owner{Run: "r1", Lock: g.File().Name()})
	g.Release()
	g = w.guard()
	if got := brief(w.pop(Owner{Run: "r2", Lock: g.File().Name()}).Updates); got != "a" {
		t.Errorf("popped %q", got)
	}
	if got := brief(w.pop(Owner{Run: "r2", Lock: g.File().Name()}).Updates); got != "" {
		t.Errorf("a run took back its own claim: %q", got)
	}
}

// An owner that let go of its lock too early can still settle, as long as its updates have not been returned.
func TestSettleAfterTheLockIsGone(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	g := w.guard()
	c := w.pop(Owner{Run: "r", Lock: g.File().Name()})
	g.Release()
	w.deliver(c)
	w.expect("")

	w.add("b")
	c = w.pop(Owner{Run: "r"})
	w.crash(c)
	w.expect("b")
	if err := c.Deliver(context.Background()); !errors.Is(err, errReturned) {
		t.Errorf("Deliver: %v, want ErrReturned", err)
	}
	w.giveBack(c)
	w.expect("b")

	c = w.pop(Owner{Run: "r2"})
	w.started["r2"] = true
	w.crash(c)
	w.expect("")
	w.deliver(c) // another process has, for us
	w.expectFates("a popped r", "b popped r2")
}

func TestCorruptClaim(t *testing.T) {
	for _, suffix := range []string{inUse, done, back} {
		for _, content := range []string{"", "{", `{"updates":[{"ts":1}]}`, "[]"} {
			w := newWorld(t)
			path := filepath.Join(w.Home.UpdateClaims(), "x"+suffix)
			w.put(path, content)
			w.expect("")
			if ok, _ := exists(w.Home.PendingUpdates()); ok {
				t.Errorf("%s %q: an array of nothing", suffix, content)
			}
			w.add("a", "b")
			w.expect("a b")
			if got := brief(w.pop(Owner{}).Updates); got != "a b" {
				t.Errorf("popped %q", got)
			}
			aside, _ := filepath.Glob(path + ".corrupt-*")
			if len(aside) != 1 || w.read(aside[0]) != content || len(w.warned) != 1 {
				t.Errorf("%s %q: kept as %q, warned %q", suffix, content, aside, w.warned)
			}
		}
	}
}

// One opening of the box finishes everything that dead processes left, whatever of it comes first.
func TestRecoverEverything(t *testing.T) {
	w := newWorld(t)
	claim := func(name, suffix, message string) {
		w.put(w.claimPath(name, suffix), `{"run":"r","at":"2026-11-21T08:00:00Z","updates":[{"ts":"2026-11-21T08:00:00Z","message":"`+message+`"}]}`)
	}
	claim("a", back, "restored")
	claim("b", done, "delivered")
	claim("c", inUse, "returned")
	w.expect("restored returned")
	w.expectFates("delivered popped r")
	if left := w.claims(); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

func TestStrangeThingsAmongTheClaims(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	folder := w.Home.UpdateClaims()
	w.put(filepath.Join(folder, "empty.json"), `{"updates":[]}`)
	w.put(filepath.Join(folder, ".x.back.tmp-1"), `{"upd`)
	w.put(filepath.Join(folder, "notes.txt"), `hello`)
	w.put(filepath.Join(folder, "directory.json", "x"), ``)
	w.put(filepath.Join(folder, "old.json.corrupt-20261121T120000.000000Z"), `{`)
	w.add("b")
	w.expect("a b")
	if len(w.warned) != 2 || !strings.Contains(w.warned[0], "was ignored") {
		t.Errorf("warned %q", w.warned)
	}
	if ok, _ := exists(filepath.Join(folder, "empty.json")); ok {
		t.Error("a claim of nothing stays")
	}
}
