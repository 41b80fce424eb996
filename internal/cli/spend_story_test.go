package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// slots makes n isolated routines r1, r2, … that are due at 10:05, and moves the clock there.
func (w *world) slots(n int) (names []string) {
	w.t.Helper()
	for i := range n {
		name := fmt.Sprint("r", i+1)
		w.must("routine", "add", name, "--cron", "5 10 * * *", "--background", "--isolated", "--update-main-session", "freely", "Look around.")
		names = append(names, name)
	}
	w.must("tick") // notes the schedules
	w.pass(time.Date(2026, 3, 2, 10, 5, 1, 0, time.UTC).Sub(w.clock()))
	return names
}

// due is the routines that a tick would start now.
func (w *world) due() (names []string) {
	w.t.Helper()
	for line := range strings.Lines(w.must("tick", "--dry-run")) {
		names = append(names, strings.Split(strings.TrimSpace(line), "\t")[3])
	}
	return names
}

// fireAll fires routines at once, as a tick does, and returns their exit statuses.
func (w *world) fireAll(names ...string) []int {
	statuses := make([]int, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { statuses[i] = w.run("fire", "--scheduled", name).status })
	}
	group.Wait()
	return statuses
}

// holding makes the service answer nobody before so many ask at once.
func holding(api *anthropicapi.Server, n int, reply anthropicapi.Reply) {
	arrived := make(chan struct{}, n)
	all := make(chan struct{})
	go func() {
		for range n {
			<-arrived
		}
		close(all)
	}()
	reply.Hold = all
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		select {
		case arrived <- struct{}{}:
		default:
		}
		return reply
	})
}

// TestManyAtOneMinute: routines that are due in the same minute all run, although what each of them may cost at most is more
// than a day may cost.
func TestManyAtOneMinute(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	names := w.slots(8)
	holding(api, len(names), anthropicapi.Reply{Text: "All is well."})
	for i, status := range w.fireAll(names...) {
		if status != 0 {
			t.Errorf("%s: exit status %d", names[i], status)
		}
	}
	for _, r := range w.runs() {
		if r["outcome"] != "ok" {
			t.Errorf("%v: %v: %v", r["name"], r["outcome"], r["error"])
		}
	}
}

// reserved starts two runs that hold what is left of the day until release is called, and a third routine that finds nothing.
func (w *world) reserved(api *anthropicapi.Server) (third string, release func()) {
	w.t.Helper()
	names := w.slots(3)
	w.must("config", "set", "spend.per-day", "0.20")
	hold, asked := make(chan struct{}), make(chan struct{}, 10)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		asked <- struct{}{}
		return anthropicapi.Reply{Text: "ok", Hold: hold}
	})
	var group sync.WaitGroup
	for _, name := range names[:2] {
		group.Go(func() {
			if r := w.run("fire", "--scheduled", name); r.status != 0 {
				w.t.Errorf("%s: exit status %d", name, r.status)
				asked <- struct{}{}
			}
		})
		<-asked
	}
	return names[2], sync.OnceFunc(func() { close(hold); group.Wait() })
}

// TestReservedByOthers: a fire that finds only what other runs have reserved leaves no record, and its slot stays due until
// they end.
func TestReservedByOthers(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	third, release := w.reserved(api)
	defer release()
	for range 2 {
		if r := w.run("fire", "--scheduled", third); r.status != 75 || r.out+r.errOut != "" {
			t.Errorf("exit status %d, %q %q", r.status, r.out, r.errOut)
		}
		if n := len(w.runs()); n != 2 {
			t.Errorf("%d records, want 2", n)
		}
		if due := w.due(); len(due) != 1 || due[0] != third {
			t.Errorf("due are %q", due)
		}
		w.pass(time.Minute)
	}
	if r := w.run("fire", third); r.status != 75 || !strings.Contains(r.errOut, "limit per-day: 0.00 spent and 0.") {
		t.Errorf("exit status %d, %q", r.status, r.errOut)
	}
	release()
	if r := w.run("fire", "--scheduled", third); r.status != 0 || w.last()["outcome"] != "ok" || w.last()["scheduled_for"] != "2026-03-02T10:05:00Z" {
		t.Errorf("exit status %d, %v", r.status, w.last())
	}
	if due := w.due(); due != nil {
		t.Errorf("due are %q", due)
	}
	if out := w.must("updates", "list"); out != "" {
		t.Errorf("updates: %s", out)
	}
}

// TestMissedForOthers: when the runs that hold the rest of the day do not end in time, the slot is missed, and the owner hears
// of it.
func TestMissedForOthers(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	third, release := w.reserved(api)
	defer release()
	if r := w.run("fire", "--scheduled", third); r.status != 75 {
		t.Errorf("exit status %d", r.status)
	}
	w.pass(16 * time.Minute)
	w.must("tick")
	if out := w.must("updates", "list"); strings.Count(out, third+" did not run at 2026-03-02 10:05") != 1 {
		t.Errorf("updates: %s", out)
	}
	w.pass(time.Hour)
	if out := w.must("schedule", "audit", "--since", "2h", "--json", third); !strings.Contains(out, `"missed"`) {
		t.Errorf("audit: %s", out)
	}
	if n := len(w.runs()); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// TestRaiseFails: a run that needs more than others have left ends there, and says why.
func TestRaiseFails(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.slots(2)
	w.must("config", "set", "spend.per-day", "0.20")
	hold, asked := make(chan struct{}), make(chan struct{}, 1)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply {
		select {
		case asked <- struct{}{}:
			return anthropicapi.Reply{Text: "ok", Hold: hold}
		default:
			r := anthropicapi.Use("list_reminders", nil)
			r.Usage = anthropicapi.Usage{In: 1000, Out: 3000}
			return r
		}
	})
	var group sync.WaitGroup
	group.Go(func() { w.run("fire", "--scheduled", "r1") })
	api.WaitRequests(1, 5*time.Minute)
	r := w.run("fire", "r2")
	close(hold)
	group.Wait()
	if r.status != 1 || !strings.Contains(r.errOut, "r2: failed: spending limit: per-day: 0.00 spent and 0.") {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	if spent := w.spentToday(); spent > 0.2 || spent < 0.06 {
		t.Errorf("%v spent", spent)
	}
}

// spentToday is what the accounts have for the day.
func (w *world) spentToday() float64 {
	w.t.Helper()
	sum := 0.0
	for _, a := range w.accounts() {
		if a.Day == "2026-03-02" {
			sum += a.Cost
		}
	}
	return sum
}

// TestLargeSession: a session that is too long to be continued for what a run may cost is not sent at all.
func TestLargeSession(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "r", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--update-main-session", "freely", "Go on.")
	api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{CacheWrite: 390_000, Out: 10}}) // 0.98 USD
	w.must("fire", "r")
	n := len(api.Requests())
	w.must("config", "set", "spend.per-run", "0.50")
	if r := w.run("fire", "r"); r.status != 1 || !strings.Contains(r.errOut, "cost limit reached: the next request may cost 0.99 USD, and 0.00 of 0.50 are spent") {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	if got := len(api.Requests()); got != n {
		t.Errorf("%d requests were sent", got-n)
	}
}

// TestLimitsOfTheConfiguration: each limit, as it is set, refuses the next automatic run.
func TestLimitsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for limit, words := range map[string]string{
		"spend.per-day 0.10":    "limit per-day: 0.10 spent of 0.10 USD, until 2026-03-03T00:00:00Z",
		"spend.per-month 0.10":  "limit per-month: 0.10 spent of 0.10 USD, until 2026-04-01T00:00:00Z",
		"spend.runs-per-day 1":  "limit runs-per-day: 1 of 1, until 2026-03-03T00:00:00Z",
		"spend.per-run 0":       "limit per-run: nothing may be spent",
		"spend.per-day none":    "",
		"spend.per-month none":  "",
		"spend.per-run 0.03":    "",
		"spend.runs-per-day 02": "",
	} {
		t.Run(limit, func(t *testing.T) {
			w, api := newNativeWorld(t)
			w.slots(1)
			api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: 50_000}}) // 0.10 USD
			w.must("fire", "r1")
			w.must(append([]string{"config", "set"}, strings.Fields(limit)...)...)
			r := w.run("fire", "r1")
			if words == "" {
				if r.status != 0 {
					t.Errorf("exit status %d, %s", r.status, r.errOut)
				}
				return
			}
			if r.status != 77 || !strings.Contains(r.errOut, words) {
				t.Errorf("exit status %d, %s", r.status, r.errOut)
			}
			if out := w.must("updates", "list"); strings.Count(out, "limit ") != 1 {
				t.Errorf("updates: %s", out)
			}
			if n := len(api.Requests()); n != 1 {
				t.Errorf("%s requests", strconv.Itoa(n))
			}
		})
	}
}

// TestRestTooSmallForARequest: where what is left of a day or a month does not pay for one request, runs are refused as at the
// limit, which they name, and the owner hears of it once.
func TestRestTooSmallForARequest(t *testing.T) {
	t.Parallel()
	for limit, words := range map[string]string{
		"spend.per-day":   "limit per-day: 0.10 spent",
		"spend.per-month": "limit per-month: 0.10 spent",
	} {
		t.Run(limit, func(t *testing.T) {
			w, api := newNativeWorld(t)
			names := w.slots(3)
			api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: 50_000}}) // 0.10 USD
			w.must("fire", "r1")
			w.must("config", "set", limit, "0.101")
			for i, status := range w.fireAll(names[1:]...) {
				if status != 77 && status != 75 { // 75: another's reservation was in the way
					t.Errorf("%s: exit status %d", names[1+i], status)
				}
			}
			for _, name := range names {
				r := w.run("fire", name)
				if r.status != 77 || !strings.Contains(r.errOut, words) || w.last()["outcome"] != "refused" {
					t.Errorf("exit status %d, %s, outcome %v", r.status, r.errOut, w.last()["outcome"])
				}
				w.pass(time.Minute)
			}
			if out := w.must("updates", "list"); strings.Count(out, "limit ") != 1 || strings.Count(out, "\n") != 1 {
				t.Errorf("updates: %s", out)
			}
			if n := len(api.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			w.must("config", "set", limit, "none")
			w.must("fire", "r1")
		})
	}
}

// TestFewRaises: each raise of a reservation waits for the disk, so a run with many requests needs few of them.
func TestFewRaises(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "r", "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely", "Look.")
	const requests = 8
	for range requests - 1 {
		use := anthropicapi.Use("list_reminders", nil)
		use.Usage = anthropicapi.Usage{In: 1000, Out: 100}
		api.Reply(use)
	}
	api.Reply(anthropicapi.Reply{Text: "done", Usage: anthropicapi.Usage{In: 1000, Out: 100}})
	w.must("config", "set", "spend.per-run", "0.30")
	w.must("fire", "r")
	raises, highest := 0, 0.0
	for line, err := range w.facts().Ledger.Lines(time.Time{}, "money.raised") {
		var f struct{ Reserved float64 }
		if err = errors.Join(err, line.Into(&f)); err != nil {
			t.Fatal(err)
		}
		raises, highest = raises+1, max(highest, f.Reserved)
	}
	if got := len(api.Requests()); got != requests || raises != 1 || highest > 0.30 {
		t.Errorf("%d raises up to %v USD for %d requests", raises, highest, got)
	}
}
