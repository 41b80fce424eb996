package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestPauseStopsAutomaticQuestions: what a scheduler starts is paused, what the owner types is not.
func TestPauseStopsAutomaticQuestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.script("turns:\n  - - text: done\n")
	w.must("chat", "begin")
	w.must("pause")
	lines := [][]string{{"-p", "-n", "hi"}, {"chat", "hi"}, {"session", "compact", "main", "keep all"}}
	for _, line := range lines {
		w.cron = true
		r := w.run(line...)
		if r.status != 75 || r.out != "" || !strings.Contains(r.errOut, "paused: everything is paused: ollim resume") {
			t.Errorf("%q by a scheduler: status %d\n%s%s", line, r.status, r.out, r.errOut)
		}
		if got := w.last()["outcome"]; got != "paused" {
			t.Errorf("%q: outcome %v, want paused", line, got)
		}
		w.cron = false
		w.pass(1e9)
	}
	w.must("-p", "-n", "hi")
	w.must("chat", "hi")
	w.must("resume")
	w.cron = true
	w.must("-p", "-n", "hi")
	w.must("chat", "hi")
}

// TestLimitsHoldAutomaticQuestions: at a spending limit no request leaves for what a scheduler starts, and the owner is told once;
// what the owner types counts and runs.
func TestLimitsHoldAutomaticQuestions(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "spend.per-day", "0.01")
	api.Reply(anthropicapi.Reply{Text: "A.", Usage: anthropicapi.Usage{In: 10, Out: 100_000}})
	w.must("-p", "-n", "hi")
	api.Reply(anthropicapi.Reply{Text: "B."})
	w.must("-p", "-n", "hi")
	before := len(api.Requests())
	w.cron = true
	for _, line := range [][]string{{"-p", "-n", "hi"}, {"-p", "-n", "--max-cost", "5", "hi"}, {"chat", "hi"}} {
		if r := w.run(line...); r.status != 77 || !strings.Contains(r.errOut, "refused: ") {
			t.Errorf("%q by a scheduler: status %d\n%s", line, r.status, r.errOut)
		}
		w.pass(1e9)
	}
	if n := len(api.Requests()); n != before {
		t.Errorf("%d requests beyond the limit", n-before)
	}
	if n := strings.Count(w.must("updates", "list"), "limit"); n != 1 {
		t.Errorf("the owner is told %d times, want once:\n%s", n, w.must("updates", "list"))
	}
}
