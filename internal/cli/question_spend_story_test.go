package cli

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// account is what the ledger says of a part of a run.
type account struct {
	Day            string
	Cost, Reserved float64
}

// accounts is what the facts add up to for each part of a run.
func (w *world) accounts() map[string]account {
	w.t.Helper()
	all := map[string]account{}
	for line, err := range w.facts().Ledger.Lines(time.Time{}, "money.reserved", "money.raised", "money.settled", "money.released") {
		var f struct {
			Run string
			account
		}
		if err = errors.Join(err, line.Into(&f)); err != nil {
			w.t.Fatal(err)
		}
		a := all[f.Run]
		switch line.Kind {
		case "money.reserved":
			a = f.account
		case "money.raised":
			a.Reserved = f.Reserved
		case "money.settled":
			a.Cost, a.Reserved = f.Cost, 0
		}
		if all[f.Run] = a; line.Kind == "money.released" {
			delete(all, f.Run)
		}
	}
	return all
}

// asksOwner makes a routine on the native engine whose first answers ask the owner, and fires it. It returns the run, which waits.
func (w *world) asksOwner(api *anthropicapi.Server, flags ...string) (run string) {
	w.t.Helper()
	api.Reply(
		anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "ask_owner", Input: map[string]any{"question": "Which?"}}}},
		anthropicapi.Reply{Text: "I have asked."},
	)
	w.must(append(append([]string{"routine", "add", "paint", "--cron", "0 9 * * *", "--background", "--isolated", "--update-main-session", "freely"}, flags...), "Paint.")...)
	w.must("fire", "paint")
	return w.last()["id"].(string)
}

// Each part of a run is reserved and settled on its own, on its own day; a run that waits reserves nothing.
func TestPartsAreAccounted(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	run := w.asksOwner(api)
	first := w.record(run)["cost"].(float64)
	if a := w.accounts(); w.outcomeOf(run) != "waiting" || len(a) != 1 || first <= 0 || a[run].Cost != first || a[run].Reserved != 0 {
		t.Fatalf("%s: %v of %+v", w.outcomeOf(run), first, a)
	}
	w.pass(20 * time.Hour) // the next day
	api.Reply(anthropicapi.Reply{Text: "done"})
	w.must("answer", "-w", run, "red")
	whole := w.record(run)["cost"].(float64)
	a := w.accounts()
	if second := a[run+"+1"].Cost; len(a) != 2 || a[run].Cost != first || math.Abs(first+second-whole) > 1e-9 || second <= 0 {
		t.Errorf("%v and then %v in %+v", first, whole, a)
	}
	if a[run].Day == a[run+"+1"].Day {
		t.Errorf("both parts count on %s", a[run].Day)
	}
	said := api.Requests()
	if q := said[len(said)-1]; !strings.Contains(string(q.Raw), "Which?") || !strings.Contains(string(q.Raw), "the answer") {
		t.Errorf("the model was asked %s", q.Raw)
	}
}

// At a limit of the day the answer is kept; the owner hears of it once, and the run goes on when it may.
func TestAnswerAtALimit(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	run := w.asksOwner(api)
	n := len(api.Requests())
	w.must("config", "set", "spend.per-day", "0.000001")
	if r := w.run("answer", "-w", run, "red"); r.status != 75 || !strings.Contains(r.errOut, "the answer is kept: limit per-day") {
		t.Errorf("exit status %d, %s", r.status, r.errOut)
	}
	if r := w.run("answer", "--continue", run); r.status != 75 || w.outcomeOf(run) != "waiting" {
		t.Errorf("exit status %d, %s", r.status, w.outcomeOf(run))
	}
	if asked := len(api.Requests()); asked != n {
		t.Errorf("%d requests, want %d", asked, n)
	}
	if pending := w.read("state/pending_updates.json"); strings.Count(pending, "No automatic run starts: limit per-day") != 1 {
		t.Errorf("the owner reads %s", pending)
	}
	w.must("config", "set", "spend.per-day", "5")
	api.Reply(anthropicapi.Reply{Text: "done"})
	w.must("answer", "--continue", run)
	if w.outcomeOf(run) != "ok" {
		t.Error(w.outcomeOf(run))
	}
}

// A run that goes on has what is left of its max-cost, and of the limit of a run.
func TestAnswerHasWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"max-cost", "per-run"} {
		w, api := newNativeWorld(t)
		run := w.asksOwner(api)
		cost := w.record(run)["cost"].(float64)
		n := len(api.Requests())
		most := fmt.Sprintf("%.6f", cost*1.5)
		if limit == "per-run" {
			w.must("config", "set", "spend.per-run", most)
		} else {
			text := w.read("routines/paint.md")
			w.write("routines/paint.md", strings.Replace(text, "---\n", "---\nmax-cost: "+most+"\n", 1))
		}
		r := w.run("answer", "-w", run, "red")
		if r.status != 1 || !strings.Contains(r.errOut, "cost limit reached") || w.outcomeOf(run) != "failed" || len(api.Requests()) != n {
			t.Errorf("%s %s of %v: exit status %d, %s, %d requests: %s", limit, most, cost, r.status, w.outcomeOf(run), len(api.Requests())-n, r.errOut)
		}
	}
}
