package update

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
		w.t.Errorf("%s: left %+v", at, files)
	}
	seen, dropped, omitted := map[string]int{}, 0, 0
	for f, err := range w.Fates(time.Time{}) {
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

// gaps are what a process may leave that dies in a change of the queue from one content to another.
func (w *world) gaps(before, after disk, was, is string) []gap {
	w.t.Helper()
	file := w.Home.PendingUpdates()
	log := w.Home.State("ledger", "2026-11-21.jsonl")
	shown := func(d, by disk) disk {
		if text, ok := by[file]; ok {
			return d.with(file, text)
		}
		return d.without(file)
	}
	gaps := []gap{{"nothing", before, was}, {"the facts", shown(after, before), is}, {"all", after, is}}
	if before[file] == "" && after[file] != "" {
		gaps = append(gaps, gap{"the file", shown(before, after), is})
		gaps[1].disk = after // the file is there before the facts
	}
	lines := strings.SplitAfter(strings.TrimPrefix(after[log], before[log]), "\n")
	text := before[log]
	for n, line := range lines[:len(lines)-1] {
		gaps = append(gaps, gap{fmt.Sprintf("%d lines and a half", n), before.with(log, text+line[:len(line)/2]), was})
		if text += line; n < len(lines)-2 {
			gaps = append(gaps, gap{fmt.Sprintf("%d lines", n+1), before.with(log, text), was})
		}
	}
	return gaps
}

func TestDyingInAdd(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 9)
	w.deliver(w.pop(Owner{}))
	before := w.snapshot()
	w.addN(10, 10)
	w.survive(w.gaps(before, w.snapshot(), "", "10"), append(numbers(1, 9), "10?"))
}

func TestDyingInAddThatDrops(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 10)
	before := w.snapshot()
	w.addN(11, 11)
	w.survive(w.gaps(before, w.snapshot(), "1 2 3 4 5 6 7 8 9 10", "(2) 3 4 5 6 7 8 9 10 11"), append(numbers(1, 10), "11?"))
}

func TestDyingInPop(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 12)
	before := w.snapshot()
	c := w.pop(Owner{})
	w.crash(c)
	after := w.snapshot()
	const all = "(3) 4 5 6 7 8 9 10 11 12"
	w.survive(append(w.gaps(before, after, all, all),
		gap{"the file was copied back by hand", after.with(w.Home.PendingUpdates(), before[w.Home.PendingUpdates()]), all}), numbers(1, 12))
}

func TestDyingInDeliver(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 12)
	c := w.pop(Owner{Run: "r"})
	before := w.snapshot()
	w.deliver(c)
	w.survive(w.gaps(before, w.snapshot(), "(3) 4 5 6 7 8 9 10 11 12", ""), numbers(1, 12))
}

func TestDyingInReturn(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 11)
	c := w.pop(Owner{})
	w.addN(12, 13)
	before := w.snapshot()
	w.giveBack(c)
	const all = "(4) 5 6 7 8 9 10 11 12 13"
	w.survive(w.gaps(before, w.snapshot(), all, all), numbers(1, 13))
}

func TestDyingInReturnToAnEmptyQueue(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 11)
	c := w.pop(Owner{})
	before := w.snapshot()
	w.giveBack(c)
	const all = "(2) 3 4 5 6 7 8 9 10 11"
	w.survive(w.gaps(before, w.snapshot(), all, all), numbers(1, 11))
}

func TestDyingInReturnWhenNothingOfItStays(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 11)
	c := w.pop(Owner{})
	w.addN(12, 30)
	before := w.snapshot()
	w.giveBack(c)
	const all = "(21) 22 23 24 25 26 27 28 29 30"
	w.survive(w.gaps(before, w.snapshot(), all, all), numbers(1, 30))
}

func TestDyingInClear(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.started["r"] = true
	w.addN(1, 11)
	before := w.snapshot()
	if _, err := w.Clear(context.Background(), "r"); err != nil {
		t.Fatal(err)
	}
	w.survive(w.gaps(before, w.snapshot(), "(2) 3 4 5 6 7 8 9 10 11", ""), numbers(1, 11))
}

// What another process is about to show may hold what it returns and what it adds: neither counts twice.
func TestDyingInAddAfterADeadClaim(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	w.addN(1, 11)
	w.crash(w.pop(Owner{}))
	before := w.snapshot()
	w.addN(12, 12)
	w.survive(w.gaps(before, w.snapshot(), "(2) 3 4 5 6 7 8 9 10 11", "(3) 4 5 6 7 8 9 10 11 12"), append(numbers(1, 11), "12?"))
}

// A power failure may bring any former view of the queue back, and tear one.
func TestFormerViews(t *testing.T) {
	w := worldAt(t, testkit.MemoryDir(t))
	file := w.Home.PendingUpdates()
	var views []string
	for n := range 14 {
		w.addN(n+1, n+1)
		views = append(views, w.read(file))
	}
	w.deliver(w.pop(Owner{}))
	w.addN(15, 17)
	c := w.pop(Owner{Run: "r", Lock: w.guard().File().Name()})
	w.addN(18, 20)
	after := w.snapshot()
	for _, view := range append(views, "") {
		w.restoreDisk(after.with(file, view))
		w.warned = nil
		w.expect("18 19 20")
		w.addN(21, 21)
		w.expect("18 19 20 21")
		if n := len(w.warned); n != 0 && view != "" || n > 1 {
			t.Errorf("warned %q", w.warned)
		}
	}
	w.giveBack(c)
	w.account("at the end", numbers(1, 21))
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
