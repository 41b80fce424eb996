package spend

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

var invalid = []string{
	"", "{", "[]", "null", `"x"`, `{"days":[]}`, `{"days":null}`, `{"runs":null}`, `{"days":{"2026-02-24":5}}`,
	`{"days":{"2026-02-24":{"spent":-1}}}`, `{"days":{"2026-02-24":{"spent":1e300}}}`, `{"days":{"2026-02-24":{"spent":"1"}}}`,
	`{"days":{"2026-02-24":{"runs":-1}}}`, `{"days":{"2026-02-24":{"runs":1e18}}}`, `{"runs":{"a":{"reserved":-3}}}`,
	`{"runs":{"a":{"cost":-3}}}`, `{"days":{}}x`,
}

// A damaged file of an earlier version is reported and kept, and what it said is made from the records of the runs.
func TestCorruptFileWithoutPast(t *testing.T) {
	for _, content := range invalid {
		d := newDesk(t, defaults)
		d.put(d.path(), content)
		d.totals("{0 0} {0 0} 0")
		if kept, err := os.ReadFile(d.path()); err != nil || string(kept) != content || d.file() != "" || len(d.warned) != 0 {
			t.Errorf("%q: totals changed something, %q, %v, warned %q", content, kept, err, d.warned)
		}
		d.settle("b", 0.5) // had reserved before
		d.settle("b", 0.5)
		d.reserve("a", 0, 1)
		d.totals("{0.5 1} {0.5 1} 2")
		reports := 1
		if strings.Contains(content, "null") { // it says nothing
			reports = 0
		}
		if kept, err := os.ReadFile(d.Home.State("former", Former)); err != nil || string(kept) != content || len(d.warned) != reports {
			t.Errorf("%q: kept as %q, %v, warned %q", content, kept, err, d.warned)
		}
	}
}

// A lost file is rebuilt from the records of the runs.
func TestPast(t *testing.T) {
	for _, content := range append([]string{"rm"}, invalid...) {
		d := newDesk(t, Limits{1, 5, 50, 500})
		at := func(day, hour int) time.Time { return time.Date(2026, 2, day, hour, 0, 0, 0, time.UTC) }
		var asked time.Time
		d.Past = func(since time.Time) ([]Past, error) {
			asked = since
			return []Past{
				{Run: "january", Started: time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC), Cost: 3, Alive: false},
				{Run: "monday", Started: at(2, 9), Cost: 0.5, Alive: false},
				{Run: "yesterday evening", Started: at(23, 22), Cost: 0.25, Alive: false},
				{Run: "just after midnight", Started: at(23, 23), Cost: 0.125, Alive: false},
				{Run: "who knows", Started: at(24, 9), Cost: -1, Alive: false},
				{Run: "under way", Started: at(24, 10), Cost: 0.2, Alive: true},
				{Run: "far beyond", Started: at(24, 10), Cost: 1.5, Alive: true},
				{Run: "new", Started: at(24, 11), Cost: 0, Alive: true}, // has just made its own record
			}, nil
		}
		if content != "rm" {
			d.put(d.path(), content)
		}
		d.totals("{1.125 3.5} {1.875 3.5} 5")
		d.reserve("new", 0.5, 0.5)
		d.totals("{1.125 3} {1.875 3} 5")
		if want := time.Date(2026, 1, 24, 12, 0, 0, 0, d.Zone); !asked.Equal(want) {
			t.Errorf("asked since %v", asked)
		}
		d.Past = func(time.Time) ([]Past, error) { t.Error("asked again"); return nil, nil }
		d.settle("under way", 0.25)
		d.settle("just after midnight", 0.125)
		d.totals("{1.375 2} {2.125 2} 5")
	}
}

// No run may start while the amount spent is unknown, not only the first time.
func TestPastUnknown(t *testing.T) {
	d := newDesk(t, defaults)
	d.put(d.path(), "{")
	d.Past = func(time.Time) ([]Past, error) { return nil, errors.New("no records") }
	for range 3 {
		if got, err := d.ask("a", 0, nil, false); got != 0 || err == nil || !strings.HasSuffix(err.Error(), "cannot be made from the records of the runs: no records") {
			t.Error(got, err)
		}
		if _, err := d.Totals(); err == nil {
			t.Error("totals of nothing")
		}
		if err := d.Settle(ctx, "a", 1); err == nil {
			t.Error("settled")
		}
	}
}

// Dates that no clock makes count today or not at all, and break nothing.
func TestStrangeDates(t *testing.T) {
	d := newDesk(t, defaults)
	d.put(d.path(), `{"days":{"":{"spent":1},"x":{"spent":0.5},"2026":{"spent":1},"2026-02":{"spent":1}},"runs":{"a":{"day":"y","reserved":1},"b":{}}}`)
	d.totals("{0.5 1} {1.5 1} 0")
	d.reserve("c", 0, 1)
	d.settle("a", 1)
	d.settle("b", 1)
	d.totals("{1.5 1} {2.5 1} 1")
}

func TestUnreadable(t *testing.T) {
	d := newDesk(t, defaults)
	if err := os.MkdirAll(d.Home.State("ledger", "2026-02-24.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ask("a", 0, nil, true); got != 0 || err == nil {
		t.Error(got, err)
	}
	if _, err := d.Totals(); err == nil {
		t.Error("totals of a directory")
	}
}
