package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// newMeteredWorld is a native world whose service counts tokens, and what its cache has, as the real one does. reply says what else an
// answer has.
func newMeteredWorld(t *testing.T, reply func(anthropicapi.Request) anthropicapi.Reply) (*world, *anthropicapi.Server) {
	t.Helper()
	w, api := newNativeWorld(t)
	cache := &anthropicapi.Cache{Now: w.clock}
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		r := anthropicapi.Reply{Text: "The summary: all quiet so far."}
		if !isSummary(q) {
			r = reply(q)
		}
		r.Usage = cache.Usage(q, 200)
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
	for n := range 40 {
		r := w.pipe(strings.Repeat(fmt.Sprintf("fire %d: a line of the input.\n", n), 130_000/30), "fire", "watch", "-")
		if r.status != 0 {
			t.Fatalf("fire %d: exit status %d: %s%s", n+1, r.status, r.errOut, w.last()["error"])
		}
		w.pass(24 * time.Hour)
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
