package spend

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

const former = `{
  "days": {"2026-02-23": {"spent": 0.75, "runs": 3, "owner": 1}, "2026-02-26": {"spent": 0.5, "runs": 1, "also": "2026-02-24"}},
  "runs": {
    "a": {"day": "2026-02-24", "job": "daily", "reserved": 0.25},
    "b": {"day": "2026-02-23", "job": "daily", "cost": 0.05, "settled": "2026-02-23"},
    "c": {"day": "2026-02-24", "owner": true}
  },
  "jobs": {"daily": {"likely": 0.5, "day": "2026-02-23"}},
  "tokens": {"a": [1, 2.50]}
}`

// The file of an earlier version is taken over once, fact by fact.
func TestImport(t *testing.T) {
	d := newDesk(t, defaults)
	d.put(d.path(), former)
	d.Past = func(time.Time) ([]Past, error) { t.Error("asked for records"); return nil, nil }
	d.totals("{0.5 0.25} {1.25 0.25} 1")
	want := page{
		Days: map[string]day{"2026-02-23": {Spent: 750_000, Runs: 3, Owner: 1}, "2026-02-26": {Spent: 500_000, Runs: 1, Also: "2026-02-24"}},
		Runs: map[string]entry{
			"a": {Day: "2026-02-24", Job: "daily", Reserved: 250_000}, "b": {Day: "2026-02-23", Job: "daily", Cost: 50_000, Settled: "2026-02-23"},
			"c": {Day: "2026-02-24", Owner: true},
		},
		Jobs: map[string]habit{"daily": {Likely: 500_000, Day: "2026-02-23"}},
	}
	if got := d.page(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if text, err := os.ReadFile(d.Home.State("former", Former)); err != nil || string(text) != former {
		t.Errorf("%q, %v", text, err)
	}
	d.put(d.path(), former) // put back by hand
	d.settle("a", 0.125)
	d.Book = with(d.Book)
	d.settle("a", 0.125)
	d.totals("{0.625 0} {1.375 0} 1")
}

// A process that is killed during the import loses nothing and takes nothing over twice.
func TestImportKilled(t *testing.T) {
	whole := newDesk(t, defaults)
	whole.put(whole.path(), former)
	whole.settle("a", 0.125)
	text := whole.file()
	for length := range len(text) {
		d := newDesk(t, defaults)
		d.put(d.path(), former)
		d.put(d.Home.State("ledger", "2026-02-24.jsonl"), text[:length])
		d.settle("a", 0.125)
		d.totals("{0.625 0} {1.375 0} 1")
	}
	d := newDesk(t, defaults) // killed before the file was moved
	d.put(d.path(), former)
	d.put(d.Home.State("ledger", "2026-02-24.jsonl"), text)
	d.totals("{0.625 0} {1.375 0} 1")
}

// synced returns the length of the ledger up to the last fact that waited for the disk.
func (d *desk) synced() (length int) {
	d.t.Helper()
	head, invalid, err := store.PeekJSON[struct{ Offset int }](d.Home.State("ledger", "head.json"))
	if invalid != nil || err != nil {
		d.t.Fatal(invalid, err)
	}
	return head.Offset
}

// Reservations and raises wait for the disk with Sync. The first settlement of a run that has reserved does not wait: after a power failure
// the reservation counts, until the run is settled from its record.
func TestPowerFailure(t *testing.T) {
	d := newDesk(t, Limits{1, 5, 50, 500})
	waits := func(what string, want bool, act func()) {
		t.Helper()
		before := d.synced()
		act()
		if got := d.synced() == len(d.file()); got != want || d.synced() < before {
			t.Errorf("%s waits: %v", what, got)
		}
	}
	d.reserve("a", 0.25, 0.25)
	waits("reserve", false, func() { d.reserve("b", 0.25, 0.25) })
	waits("raise", false, func() {
		if _, err := d.Raise(ctx, "b", 0.5, 0.5, nil); err != nil {
			t.Error(err)
		}
	})
	waits("sync", true, func() {
		if err := d.Sync(); err != nil {
			t.Error(err)
		}
	})
	waits("settle", false, func() { d.settle("b", 0.125) })
	waits("settle again", true, func() { d.settle("b", 0.25) })
	waits("settle the unknown", true, func() { d.settle("c", 0.25) })
	waits("release", true, func() { d.reserve("e", 0.25, 0.25); d.release("e") })
	d.settle("a", 0.125)
	d.totals("{0.625 0} {0.625 0} 3")
	name := d.Home.State("ledger", "2026-02-24.jsonl")
	if err := os.Truncate(name, int64(d.synced())); err != nil {
		t.Fatal(err)
	}
	d.Book = with(d.Book)
	d.totals("{0.5 0.25} {0.5 0.25} 3")
	if _, err := d.ask("f", 1, func(string) (float64, bool) { return 0.125, false }, false); err != nil {
		t.Fatal(err)
	}
	d.totals("{0.625 1} {0.625 1} 4")
	if faults, _, err := d.Ledger.Verify(); len(faults) > 0 || err != nil {
		t.Error(faults, err)
	}
}

// Without the ledger the accounts are made from the records, without its checkpoint from the facts.
func TestRemoved(t *testing.T) {
	d := newDesk(t, defaults)
	for i := range 400 { // enough for a checkpoint
		d.reserve(fmt.Sprint("r", i), 0.01, 0.01)
		d.settle(fmt.Sprint("r", i), 0.01)
	}
	if err := d.Sync(); err != nil { // this makes head.json
		t.Fatal(err)
	}
	d.Past = func(time.Time) ([]Past, error) { t.Error("asked for records"); return nil, nil }
	for _, name := range []string{"", "checkpoint.json", "*/head.json"} {
		files, err := filepath.Glob(d.Home.State(name))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if !strings.HasSuffix(files[0], "state") {
			_ = os.Remove(files[0])
		}
		d.Book = with(d.Book)
		d.totals("{4 0} {4 0} 400")
	}
	if err := os.RemoveAll(d.Home.State("ledger")); err != nil {
		t.Fatal(err)
	}
	d.Past = func(time.Time) ([]Past, error) { return []Past{{Run: "r1", Started: d.now, Cost: 3}}, nil }
	d.Book = with(d.Book)
	d.totals("{3 0} {3 0} 1")
	d.reserve("new", 0, 1)
	d.totals("{3 1} {3 1} 2")
}
