package update

import (
	"context"
	"errors"
	"os"
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
	if exists(w.Home.PendingUpdates()) {
		t.Error("the array is still there")
	}
	w.expect("")
	w.add("12")
	w.deliver(c)
	w.expect("12")
	if files := w.claims(); len(files) != 0 {
		t.Errorf("left %+v", files)
	}
	w.expectFates("1 dropped", "2 dropped", "(2) popped r", "3 popped r", "4 popped r", "5 popped r", "6 popped r",
		"7 popped r", "8 popped r", "9 popped r", "10 popped r", "11 popped r")
}

func TestClaim(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	g := w.guard()
	w.pop(Owner{Run: "r1", Lock: g.File().Name()})
	if c := w.claims(); len(c) != 1 || c[0].Run != "r1" || c[0].Lock != w.Home.SessionLock("") || brief(c[0].Pending.Updates) != "a" {
		t.Errorf("claims %+v", c)
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
		t.Errorf("left %+v, %v", files, err)
	}
	if box, fates := w.peek(), w.fates(); (box == "a") == (len(fates) > 0) {
		t.Errorf("box %q and fates %q", box, fates)
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
				t.Errorf("left %+v", files)
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
