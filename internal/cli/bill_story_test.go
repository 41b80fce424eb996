package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// newMeteredWorld is a native world whose service counts tokens, and what its cache has, as the real one does. reply says what else an
// answer has.
func newMeteredWorld(t *testing.T, reply func(anthropicapi.Request) anthropicapi.Reply) (*world, *anthropicapi.Server) {
	t.Helper()
	w, api := newNativeWorld(t)
	cache := &anthropicapi.Cache{Now: w.clock}
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		r, out := anthropicapi.Reply{Text: "The summary: all quiet so far."}, 1500
		if !isSummary(q) {
			r, out = reply(q), 200
		}
		r.Usage = cache.Usage(q, out)
		return r
	})
	return w, api
}

// TestLongSessionGoesOn: a session that each fire makes longer by much is compacted before a request costs more than a run may, so
// that no fire is ever refused.
func TestLongSessionGoesOn(t *testing.T) {
	t.Parallel()
	w, _ := newMeteredWorld(t, func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Noted."} })
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Read the input.")
	compacted := 0.0
	for n := range testkit.Full(40, 15) {
		r := w.pipe(strings.Repeat(fmt.Sprintf("fire %d: a line of the input.\n", n), 130_000/30), "fire", "watch", "-")
		if r.status != 0 {
			t.Fatalf("fire %d: exit status %d: %s%s", n+1, r.status, r.errOut, w.last()["error"])
		}
		compactions, _ := w.last()["compactions"].(float64)
		compacted += compactions
		w.pass(24 * time.Hour)
	}
	if compacted < 2 {
		t.Errorf("%.0f compactions", compacted)
	}
}

// TestRefusalNamesRemedy: a run whose next request would cost more than it may says what helps, and that helps as it is typed.
func TestRefusalNamesRemedy(t *testing.T) {
	t.Parallel()
	w, _ := newMeteredWorld(t, func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Noted."} })
	refused := func(r result, sep string) []string {
		t.Helper()
		_, line, found := strings.Cut(r.errOut, sep)
		if r.status == 0 || !found {
			t.Fatalf("exit status %d, no remedy after %q: %s", r.status, sep, r.errOut)
		}
		line, _, _ = strings.Cut(line, "\n")
		line, _, _ = strings.Cut(line, ";")
		return strings.Fields(line)
	}
	if r := w.pipe(strings.Repeat("what was said long ago\n", 10_000), "chat", "-"); r.status != 0 {
		t.Fatal(r.errOut)
	}
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "--max-cost", "0.15", "Look.")
	w.must(refused(w.run("fire", "branch"), "to shorten the session: ollim ")...)
	w.must("fire", "branch")

	w.must("config", "set", "spend.per-run", "0.05")
	w.must("routine", "add", "alone", "--cron", "0 9 * * *", "--background", "--isolated", "Look.")
	text := strings.Repeat("what came in\n", 10_000)
	w.must(refused(w.pipe(text, "fire", "alone", "-"), "to allow more: ollim ")...)
	if r := w.pipe(text, "fire", "alone", "-"); r.status != 0 {
		t.Errorf("refused again: %s", r.errOut)
	}
}

// TestConstantWorkCostsAConstantSum: a monitor that does the same at each fire does not cost more from day to day. Its session grows by
// what it does and is compacted, so fires are compared over whole periods, each from one compaction to the next: the last one costs as
// much for each fire as the first one, within a tenth. Between compactions the session grows by the work alone.
func TestConstantWorkCostsAConstantSum(t *testing.T) {
	t.Parallel()
	w, api := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
		if len(q.ToolResults()) == 0 {
			return anthropicapi.Use("search_docs", map[string]string{"query": "gate"})
		}
		return anthropicapi.Reply{Text: "Nothing has changed."}
	})
	const line = "service ok, load 0.41, disk 63 %"
	w.must("config", "set", "compact-at", "20000")
	w.writeProgram("gates/look", "#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8 9; do for m in 1 2 3 4 5 6 7 8 9; do echo '"+line+"'; echo '"+line+"'; done; done\n")
	for n := range 5 {
		w.must("routine", "add", fmt.Sprint("other", n), "--cron", fmt.Sprintf("%d %d * * *", 10*n, 7+2*n), "--background", "--description", fmt.Sprint("Task number ", n, " of the day"), "Do it.")
	}
	w.must("routine", "add", "watch", "--cron", "*/30 * * * *", "--background", "--session", "persistent", "--gate", "look", "Judge what the gate says.")
	var periods [][]float64
	spoken := 0
	for range 44 {
		w.must("fire", "watch")
		r := w.last()
		cost, _ := r["cost"].(float64)
		if compactions, _ := r["compactions"].(float64); compactions > 0 {
			periods = append(periods, nil)
		}
		if n := len(periods); n > 0 {
			periods[n-1] = append(periods[n-1], cost)
		}
		if strings.Contains(w.prompt(), "Upcoming bg tasks") {
			spoken++
		}
		w.pass(30*time.Minute - time.Second)
	}
	if len(periods) < 3 {
		t.Fatalf("%d compactions in 44 fires of %d requests, too few to compare", len(periods), len(api.Requests()))
	}
	mean := func(costs []float64) (sum float64) {
		for _, c := range costs {
			sum += c / float64(len(costs))
		}
		return sum
	}
	first, last := periods[0], periods[len(periods)-2] // the latest is not over
	if ratio := mean(last) / mean(first); ratio > 1.1 || ratio < 0.9 {
		t.Errorf("a fire cost %.4f USD in the first period and %.4f in the last: %.4f", mean(first), mean(last), periods)
	}
	if spoken > 14 {
		t.Errorf("%d of 44 prompts say what lies ahead", spoken)
	}
}
