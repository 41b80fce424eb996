package spend

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]func([]string) error{"keep": keep, "settle": settle, "nobody": nobody})
}

// desk is a book with a clock that stands still until it is moved, and what was warned of.
type desk struct {
	Book
	t      reporter
	now    time.Time
	warned []string
}

// reporter is what *testing.T and *rapid.T have in common.
type reporter interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var (
	defaults = Limits{1, 5, 50, 500}
	inf      = math.Inf(1)
	none     = Limits{inf, inf, inf, math.MaxInt}
	ctx      = context.Background()
)

func newDesk(t *testing.T, l Limits) *desk {
	t.Helper()
	return deskAt(t, t.TempDir(), "Europe/Prague", l)
}

// deskAt is at noon of 24 February 2026.
func deskAt(t reporter, dir, zone string, l Limits) *desk {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, now: time.Date(2026, 2, 24, 12, 0, 0, 0, loc)}
	disk := store.Disk{Now: func() time.Time { return d.now }, Warn: func(m string) { d.warned = append(d.warned, m) }}
	d.Book = with(Book{Home: paths.Dir(dir), Disk: disk, Zone: loc, Limits: l})
	return d
}

// with gives a book its ledger, which takes over the file of an earlier version.
func with(b Book) Book {
	b.Ledger = ledger.New(b.Home, b.Disk, Facts())
	b.Ledger.Imports = []ledger.Import{{Store: "spend", Former: []string{Former}, Add: b.Import}}
	return b
}

// at sets the clock to a local time.
func (d *desk) at(local string) {
	d.t.Helper()
	now, err := time.ParseInLocation("2006-01-02 15:04", local, d.Zone)
	if err != nil {
		d.t.Fatal(err)
	}
	d.now = now
}

// path is the file of an earlier version.
func (d *desk) path() string { return d.Home.State(Former) }

// ask is Reserve of a run of no job; it returns what was reserved.
func (d *desk) ask(run string, most float64, look look, force bool) (float64, error) {
	g, err := d.Reserve(ctx, Claim{Run: run, Most: most, Force: force}, look)
	return g.Reserved, err
}

func (d *desk) reserve(run string, most, want float64) {
	d.t.Helper()
	if got, err := d.ask(run, most, nil, false); got != want || err != nil {
		d.t.Errorf("Reserve(%s, %v) = %v, %v, want %v", run, most, got, err, want)
	}
}

func (d *desk) force(run string, most, want float64) {
	d.t.Helper()
	if got, err := d.ask(run, most, nil, true); got != want || err != nil {
		d.t.Errorf("Reserve(%s, %v) by force = %v, %v, want %v", run, most, got, err, want)
	}
}

// refused expects a limit and that nothing is written.
func (d *desk) refused(run, want string) *Limit {
	d.t.Helper()
	before := d.file()
	got, err := d.ask(run, 0, nil, false)
	var limit *Limit
	if !errors.As(err, &limit) || got != 0 {
		d.t.Fatalf("Reserve(%s) = %v, %v, want refused", run, got, err)
	}
	if limit.Error() != want {
		d.t.Errorf("Reserve(%s):\n%q, want\n%q", run, limit, want)
	}
	if after := d.file(); after != before {
		d.t.Errorf("written: %s", after)
	}
	return limit
}

func (d *desk) settle(run string, cost float64) {
	d.t.Helper()
	if err := d.Settle(ctx, run, cost); err != nil {
		d.t.Errorf("Settle(%s, %v): %v", run, cost, err)
	}
}

func (d *desk) release(run string) {
	d.t.Helper()
	if err := d.Release(ctx, run, 0); err != nil {
		d.t.Errorf("Release(%s): %v", run, err)
	}
}

// totals expects spent and reserved today, the same of the month, and runs today.
func (d *desk) totals(want string) {
	d.t.Helper()
	got, err := d.Totals()
	if err != nil {
		d.t.Fatal(err)
	}
	if s := fmt.Sprint(got.Today, got.Month, got.Runs); s != want {
		d.t.Errorf("totals %s, want %s", s, want)
	}
}

// page is the state of the accounts.
func (d *desk) page() page {
	d.t.Helper()
	p, err := d.accounts()
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// file is the ledger, "" if it is not there.
func (d *desk) file() (text string) {
	d.t.Helper()
	names, _ := filepath.Glob(d.Home.State("ledger", "*.jsonl"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			d.t.Fatal(err)
		}
		text += string(data)
	}
	return text
}

func (d *desk) put(path, content string) {
	d.t.Helper()
	if err := errors.Join(store.MkdirAll(filepath.Dir(path)), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}

func asides(path string) int {
	found, _ := filepath.Glob(path + ".corrupt-*")
	return len(found)
}
