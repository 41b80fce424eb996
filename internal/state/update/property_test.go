package update

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/testkit"
	"pgregory.net/rapid"
)

// model is the box as a few slices: updates are numbered in the order in which they were added.
type model struct {
	omitted int
	real    []int
	claims  []*modelClaim

	messages                 []string // by number
	popped, dropped, cleared []int
	poppedOmitted            int
	clearedOmitted           int
}

type modelClaim struct {
	claim   *Claim
	guard   *lock.Guard // of the run that holds a session lock, nil for other claims
	run     string
	dead    bool
	omitted int
	real    []int
}

func (m *model) limit() {
	slices.Sort(m.real)
	for len(m.real) > maxEntries || m.omitted > 0 && len(m.real) > maxEntries-1 {
		m.dropped = append(m.dropped, m.real[0])
		m.real = m.real[1:]
		m.omitted++
	}
}

func (m *model) deliver(c *modelClaim) {
	m.popped = append(m.popped, c.real...)
	m.poppedOmitted += c.omitted
	m.remove(c)
}

func (m *model) giveBack(c *modelClaim) {
	m.real = append(m.real, c.real...)
	m.omitted += c.omitted
	m.limit()
	m.remove(c)
}

func (m *model) remove(c *modelClaim) {
	m.claims = slices.DeleteFunc(m.claims, func(other *modelClaim) bool { return other == c })
}

// recover is what everybody does first.
func (m *model) recover(started map[string]bool) {
	for _, c := range slices.Clone(m.claims) {
		switch {
		case !c.dead:
		case started[c.run]:
			m.deliver(c)
		default:
			m.giveBack(c)
		}
	}
}

func (m *model) text(omitted int, real []int) string {
	var words []string
	if omitted > 0 {
		words = append(words, fmt.Sprintf("(%d)", omitted))
	}
	for _, n := range real {
		words = append(words, m.messages[n])
	}
	return strings.Join(words, " ")
}

// machine is the box and its model side by side.
type machine struct {
	*world
	m    model
	runs int
}

func (x *machine) Add(t *rapid.T) {
	x.tick(t)
	x.m.recover(x.started)
	message := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "message")
	if err := x.Box.Add(context.Background(), message, "owner"); err != nil {
		t.Fatal(err)
	}
	x.m.messages = append(x.m.messages, message)
	x.m.real = append(x.m.real, len(x.m.messages)-1)
	x.m.limit()
}

// AddMany makes the cap matter.
func (x *machine) AddMany(t *rapid.T) {
	for range rapid.IntRange(8, 12).Draw(t, "n") {
		x.Add(t)
	}
}

func (x *machine) Peek(t *rapid.T) {
	x.tick(t)
	x.m.recover(x.started)
	list, err := x.Box.Peek(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := brief(list), x.m.text(x.m.omitted, x.m.real); got != want {
		t.Fatalf("peeked %q, want %q", got, want)
	}
	increasing(t, list)
}

func (x *machine) PopAsPerson(t *rapid.T) { x.popFor(t, Owner{}, nil) }

func (x *machine) PopAsRun(t *rapid.T) {
	x.runs++
	x.popFor(t, Owner{Run: fmt.Sprint("r", x.runs)}, nil)
}

// PopAsMain needs the session lock, which only the death of the last run of main gives free.
func (x *machine) PopAsMain(t *rapid.T) {
	guard, err := lock.TryGuard(x.Home.SessionLock(""))
	if err != nil {
		t.Skip("main is busy")
	}
	x.runs++
	x.popFor(t, Owner{Run: fmt.Sprint("r", x.runs), Lock: guard.File().Name()}, guard)
}

func (x *machine) popFor(t *rapid.T, owner Owner, guard *lock.Guard) {
	x.tick(t)
	x.m.recover(x.started)
	c, err := x.Pop(context.Background(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := brief(c.Updates), x.m.text(x.m.omitted, x.m.real); got != want {
		t.Fatalf("popped %q, want %q", got, want)
	}
	increasing(t, c.Updates)
	if len(c.Updates) == 0 {
		guardRelease(guard)
		return
	}
	x.m.claims = append(x.m.claims, &modelClaim{c, guard, owner.Run, false, x.m.omitted, x.m.real})
	x.m.omitted, x.m.real = 0, nil
}

func guardRelease(g *lock.Guard) {
	if g != nil {
		g.Release()
	}
}

// alive draws one of the claims in use.
func (x *machine) alive(t *rapid.T) *modelClaim {
	var alive []*modelClaim
	for _, c := range x.m.claims {
		if !c.dead {
			alive = append(alive, c)
		}
	}
	if len(alive) == 0 {
		t.Skip("no claim in use")
	}
	return rapid.SampledFrom(alive).Draw(t, "claim")
}

func (x *machine) Start(t *rapid.T) {
	if c := x.alive(t); c.run != "" {
		x.started[c.run] = true
	}
}

func (x *machine) Deliver(t *rapid.T) {
	c := x.alive(t)
	x.tick(t)
	x.m.recover(x.started)
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		if err := c.claim.Deliver(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.claim.Return(context.Background()); err != nil { // as a deferred call would
		t.Fatal(err)
	}
	guardRelease(c.guard)
	x.m.deliver(c)
}

func (x *machine) Return(t *rapid.T) {
	c := x.alive(t)
	x.tick(t)
	x.m.recover(x.started)
	for range rapid.IntRange(1, 2).Draw(t, "times") {
		if err := c.claim.Return(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	guardRelease(c.guard)
	x.m.giveBack(c)
}

func (x *machine) Crash(t *rapid.T) {
	c := x.alive(t)
	x.crash(c.claim)
	guardRelease(c.guard)
	c.dead = true
}

func (x *machine) Clear(t *rapid.T) {
	x.tick(t)
	x.m.recover(x.started)
	n, err := x.Box.Clear(context.Background(), "owner")
	if err != nil || n != len(x.m.real) {
		t.Fatalf("cleared %d, %v, want %d", n, err, len(x.m.real))
	}
	x.m.cleared = append(x.m.cleared, x.m.real...)
	x.m.clearedOmitted += x.m.omitted
	x.m.omitted, x.m.real = 0, nil
}

// Check reads the array directly, because the Box would repair it.
func (x *machine) Check(t *rapid.T) {
	data, err := os.ReadFile(x.Home.PendingUpdates())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var entries []entry
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil || len(entries) == 0 || len(entries) > maxEntries {
		t.Fatalf("the array has %d entries, %v", len(entries), err)
	}
}

// Audit compares the whole archive with the model, and holds both to the law of conservation.
func (x *machine) Audit(t *rapid.T) {
	got := map[string]int{}
	popped, poppedOmitted, clearedOmitted := 0, 0, 0
	for f, err := range x.Fates(time.Time{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case f.Omitted == 0:
			got[f.Became+" "+f.Message]++
			if f.Became == becameUsed {
				popped++
			}
		case f.Became == becameUsed:
			poppedOmitted += f.Omitted
		case f.Became == becameCleared:
			clearedOmitted += f.Omitted
		}
	}
	want := map[string]int{}
	for became, list := range map[string][]int{becameUsed: x.m.popped, becameDropped: x.m.dropped, becameCleared: x.m.cleared} {
		for _, n := range list {
			want[became+" "+x.m.messages[n]]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || poppedOmitted != x.m.poppedOmitted || clearedOmitted != x.m.clearedOmitted {
		t.Fatalf("archive %v, omitted %d popped, %d cleared; want %v, %d, %d", got, poppedOmitted, clearedOmitted, want,
			x.m.poppedOmitted, x.m.clearedOmitted)
	}
	remain := x.m.omitted + len(x.m.real)
	for _, c := range x.m.claims {
		remain += c.omitted + len(c.real)
	}
	if sum := popped + poppedOmitted + clearedOmitted + len(x.m.cleared) + remain; sum != len(x.m.messages) {
		t.Fatalf("%d updates accounted for, %d added", sum, len(x.m.messages))
	}
}

// tick moves the clock, also not at all, by less than a microsecond, and back.
func (x *machine) tick(t *rapid.T) {
	x.now = x.now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 1000, 2000, 1e9, -1000, -2000, -1e9}).Draw(t, "ns")))
}

func increasing(t *rapid.T, list []Update) {
	for i := 1; i < len(list); i++ {
		if !list[i].TS.After(list[i-1].TS) {
			t.Fatalf("ts not increasing: %v", list)
		}
	}
}

func TestBoxAgainstModel(t *testing.T) {
	root := testkit.MemoryDir(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			r.Fatal(err)
		}
		x := &machine{world: worldAt(t, dir)}
		x.step = 0
		r.Repeat(rapid.StateMachineActions(x))
		for _, c := range x.m.claims {
			x.crash(c.claim)
			guardRelease(c.guard)
			c.dead = true
		}
		x.Peek(r)
		x.Audit(r)
		if files := x.claims(); len(files) != 0 {
			r.Fatalf("left %+v", files)
		}
	})
}
