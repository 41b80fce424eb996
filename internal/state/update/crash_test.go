package update

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// gap is what a process leaves on the disk when it dies between two steps, and what the box must hold after that.
type gap struct {
	name string
	disk disk
	want string
}

// survive lets the next process find each gap and do each thing that it may do first.
func (w *world) survive(gaps []gap, sum []string) {
	w.t.Helper()
	next := map[string]func(){
		"Peek":  func() {},
		"Add":   func() { w.add("next") },
		"Pop":   func() { w.giveBack(w.pop(Owner{Run: "next"})) },
		"Clear": func() { w.clear() },
		"crash": func() { w.crash(w.pop(Owner{Run: "next"})) },
	}
	for _, g := range gaps {
		for _, first := range []string{"Peek", "Add", "Pop", "Clear", "crash"} {
			w.restoreDisk(g.disk)
			at := fmt.Sprintf("dead after %q, then %s", g.name, first)
			if first == "Peek" {
				if got := w.peek(); got != g.want {
					w.t.Errorf("%s: the box holds %q, want %q", at, got, g.want)
				}
			}
			next[first]()
			messages := sum
			if first == "Add" {
				messages = append(slices.Clone(sum), "next")
			}
			w.account(at, messages)
		}
	}
}

func (w *world) clear() {
	w.t.Helper()
	if _, err := w.Clear(context.Background(), "owner"); err != nil {
		w.t.Fatal(err)
	}
}

// account empties the box and checks that each of the messages met one fate, each line of the archive is needed, and the
// sentinels stand for exactly those that were dropped. A message with a ? may have been added or not.
func (w *world) account(at string, messages []string) {
	w.t.Helper()
	w.deliver(w.pop(Owner{Run: "last"}))
	if files := w.claims(); len(files) != 0 {
		w.t.Errorf("%s: left %q", at, files)
	}
	seen, dropped, omitted := map[string]int{}, 0, 0
	for f, err := range w.Archive(nil) {
		if err != nil {
			w.t.Fatal(err)
		}
		if f.Became == becameDropped {
			dropped++
		}
		if omitted += f.Omitted; f.Omitted == 0 {
			seen[f.Message]++
		}
	}
	for _, m := range messages {
		name, maybe := strings.CutSuffix(m, "?")
		if n := seen[name]; n != 1 && (n != 0 || !maybe) {
			w.t.Errorf("%s: %q met %d fates", at, name, n)
		}
		delete(seen, name)
	}
	if len(seen) != 0 || dropped != omitted {
		w.t.Errorf("%s: from nowhere: %v; %d dropped, %d omitted", at, seen, dropped, omitted)
	}
}

func numbers(from, to int) (list []string) {
	for i := from; i <= to; i++ {
		list = append(list, fmt.Sprint(i))
	}
	return list
}

// appended is the archive of d with the first n lines that it has more than before's; half: and half of the next.
func (w *world) appended(before, d disk, n int, half bool) string {
	path := w.Home.UpdateArchive()
	lines := strings.SplitAfter(strings.TrimPrefix(d[path], before[path]), "\n")
	text := before[path] + strings.Join(lines[:n], "")
	if half {
		text += lines[n][:len(lines[n])/2]
	}
	return text
}

func TestDyingInAdd(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	array, archive := w.Home.PendingUpdates(), w.Home.UpdateArchive()
	w.addN(1, 10)
	before := w.snapshot()
	w.add("11")
	after := w.snapshot()
	gaps := []gap{{"nothing", before, "1 2 3 4 5 6 7 8 9 10"}, {"all", after, "(2) 3 4 5 6 7 8 9 10 11"}}
	for n := range 3 {
		for _, half := range []bool{false, true} {
			d := before.with(archive, w.appended(before, after, n, half))
			g := gap{fmt.Sprintf("%d lines, half %v", n, half), d, "1 2 3 4 5 6 7 8 9 10"}
			if n == 2 {
				g.disk, g.want = d.with(array, after[array]), "(2) 3 4 5 6 7 8 9 10 11"
			}
			gaps = append(gaps, g)
		}
	}
	w.survive(gaps, append(numbers(1, 10), "11?"))
}

func TestDyingInPop(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 12)
	before := w.snapshot()
	c := w.pop(Owner{})
	w.crash(c)
	after := w.snapshot()
	claim, undo := w.claimPath(c.name, inUse), w.claimPath(c.name, back)
	const all = "(3) 4 5 6 7 8 9 10 11 12"
	w.survive([]gap{
		{"nothing", before, all},
		{"the claim is written", before.with(undo, after[claim]), all},
		{"the array is gone", after.without(claim).with(undo, after[claim]), all},
		{"all", after, all},
		{"the array was copied back by hand", after.with(w.Home.PendingUpdates(), before[w.Home.PendingUpdates()]), all},
	}, numbers(1, 12))
}

func TestDyingInDeliver(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 12)
	c := w.pop(Owner{Run: "r"})
	before := w.snapshot()
	w.deliver(c)
	after := w.snapshot()
	claim, finished := w.claimPath(c.name, inUse), w.claimPath(c.name, done)
	renamed := before.without(claim).with(finished, before[claim])
	gaps := []gap{
		{"nothing", before, "(3) 4 5 6 7 8 9 10 11 12"},
		{"the rename", renamed, ""},
		{"the archive", after.with(finished, before[claim]), ""},
		{"all", after, ""},
	}
	for n := range 10 {
		for _, half := range []bool{false, true} {
			d := renamed.with(w.Home.UpdateArchive(), w.appended(before, after, n, half))
			gaps = append(gaps, gap{fmt.Sprintf("%d lines, half %v", n, half), d, ""})
		}
	}
	w.survive(gaps, numbers(1, 12))
	for _, g := range gaps[1:] { // nothing is archived twice, not even as lines
		w.restoreDisk(g.disk)
		w.expect("")
		if n := strings.Count(w.read(w.Home.UpdateArchive()), `"popped"`); n < 10 || n > 10 {
			t.Errorf("dead after %q: %d popped lines, want 10", g.name, n)
		}
	}
}

func TestDyingInReturn(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	array, archive := w.Home.PendingUpdates(), w.Home.UpdateArchive()
	w.addN(1, 11)
	c := w.pop(Owner{})
	w.addN(12, 13)
	before := w.snapshot()
	w.giveBack(c)
	after := w.snapshot()
	claim, redo := w.claimPath(c.name, inUse), w.claimPath(c.name, back)
	order := fmt.Sprintf(`{"at":"2026-11-21T13:00:00+01:00","updates":%s}`, after[array])
	const all = "(4) 5 6 7 8 9 10 11 12 13"
	w.survive([]gap{
		{"nothing", before, all},
		{"half a line", before.with(archive, w.appended(before, after, 0, true)), all},
		{"one line", before.with(archive, w.appended(before, after, 1, false)), all},
		{"both lines", before.with(archive, after[archive]), all},
		{"the order", before.with(archive, after[archive]).with(redo, order), all},
		{"the array", after.with(redo, order).with(claim, before[claim]), all},
		{"the claim", after.with(redo, order), all},
		{"all", after, all},
	}, numbers(1, 13))
}

func TestDyingInReturnWhenNothingOfItStays(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 11)
	c := w.pop(Owner{})
	w.addN(12, 30)
	before := w.snapshot()
	w.giveBack(c)
	after := w.snapshot()
	claim, redo := w.claimPath(c.name, inUse), w.claimPath(c.name, back)
	order := fmt.Sprintf(`{"at":"2026-11-21T13:00:00+01:00","updates":%s}`, after[w.Home.PendingUpdates()])
	const all = "(21) 22 23 24 25 26 27 28 29 30"
	w.survive([]gap{
		{"nothing", before, all},
		{"the array", after.with(redo, order).with(claim, before[claim]), all},
		{"the claim", after.with(redo, order), all},
		{"all", after, all},
	}, numbers(1, 30))
}

func TestDyingInClear(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.started["r"] = true // the run that clears has started, which does not make its claim delivered
	w.addN(1, 11)
	before := w.snapshot()
	if _, err := w.Clear(context.Background(), "r"); err != nil {
		t.Fatal(err)
	}
	after := w.snapshot()
	array := w.Home.PendingUpdates()
	claim, finished := w.claimPath("x", inUse), w.claimPath("x", done)
	doc := fmt.Sprintf(`{"run":"r","cleared":true,"at":"2026-11-21T13:00:00+01:00","updates":%s}`, before[array])
	const all = "(2) 3 4 5 6 7 8 9 10 11"
	w.survive([]gap{
		{"the claim", before.with(w.claimPath("x", back), doc), all},
		{"the move", before.without(array).with(claim, doc), all},
		{"the decision", before.without(array).with(finished, doc), ""},
		{"the archive", after.with(finished, doc), ""},
		{"all", after, ""},
	}, numbers(1, 11))
	w.restoreDisk(before.without(array).with(finished, doc))
	w.expect("")
	w.expectFates("1 dropped", "2 dropped", "(2) cleared r", "3 cleared r", "4 cleared r", "5 cleared r", "6 cleared r",
		"7 cleared r", "8 cleared r", "9 cleared r", "10 cleared r", "11 cleared r")
}

// Two dead claims at once, the younger of which looks older by name.
func TestSeveralDeadClaims(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 11)
	a := w.pop(Owner{})
	w.addN(12, 14)
	w.now = noon().Add(-1)
	b := w.pop(Owner{})
	w.addN(15, 16)
	w.crash(a)
	w.crash(b)
	before := w.snapshot()
	w.survive([]gap{{"two pops", before, "(7) 8 9 10 11 12 13 14 15 16"}}, numbers(1, 16))
}
