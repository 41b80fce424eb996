package budget

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

func TestMain(m *testing.M) {
	testkit.Main(m, map[string]func([]string) error{"all": takeAll, "some": takeSome})
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
}

var ctx = context.Background()

func newDesk(t *testing.T) *desk {
	t.Helper()
	return deskAt(t, t.TempDir(), "Europe/Prague")
}

// deskAt is at noon of 24 February 2026.
func deskAt(t reporter, dir, zone string) *desk {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, now: time.Date(2026, 2, 24, 12, 0, 0, 0, loc)}
	disk := store.Disk{Now: func() time.Time { return d.now }, Warn: func(m string) { d.warned = append(d.warned, m) }}
	d.Book = Book{Home: paths.Dir(dir), Disk: disk, Zone: loc}
	return d
}

// at sets the clock to a time in the book's zone.
func (d *desk) at(local string) {
	d.t.Helper()
	now, err := time.ParseInLocation(time.DateTime, local, d.Zone)
	if err != nil {
		d.t.Fatal(err)
	}
	d.now = now
}

// pass moves the clock.
func (d *desk) pass(by time.Duration) { d.now = d.now.Add(by) }

// shows expects the status as words.
func (d *desk) shows(want string) {
	d.t.Helper()
	s, err := d.Status()
	if got := strings.ReplaceAll(s.Full(), "\n", ", "); got != want || err != nil {
		d.t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func (d *desk) take(want bool) {
	d.t.Helper()
	ok, s, err := d.Take(ctx)
	if ok != want || err != nil {
		d.t.Errorf("Take = %v, %v, want %v", ok, err, want)
	}
	if now, err := d.Status(); now != s || err != nil {
		d.t.Errorf("Take says %+v, but it is %+v, %v", s, now, err)
	}
}

// takes takes so many.
func (d *desk) takes(n int) {
	d.t.Helper()
	for range n {
		d.take(true)
	}
}

func (d *desk) critical() {
	d.t.Helper()
	if err := d.TakeCritical(ctx); err != nil {
		d.t.Error(err)
	}
}

func (d *desk) giveBack(critical bool) {
	d.t.Helper()
	if err := d.Return(ctx, critical); err != nil {
		d.t.Error(err)
	}
}

// set changes what is not negative.
func (d *desk) set(capacity, rate int) {
	d.t.Helper()
	if err := d.Set(ctx, unlessNegative(capacity), unlessNegative(rate)); err != nil {
		d.t.Error(err)
	}
}

func unlessNegative(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

// file is ping_budget.json, "" if it is not there.
func (d *desk) file() string {
	d.t.Helper()
	data, err := os.ReadFile(d.Home.PingBudget())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(data)
}

// put writes the file; a map as JSON.
func (d *desk) put(content any) {
	d.t.Helper()
	text, isText := content.(string)
	if !isText {
		data, err := json.Marshal(content)
		if err != nil {
			d.t.Fatal(err)
		}
		text = string(data)
	}
	if err := errors.Join(store.MkdirAll(d.Home.State()), os.WriteFile(d.Home.PingBudget(), []byte(text), 0o600)); err != nil {
		d.t.Fatal(err)
	}
}
