package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestResultCost: an amount is rounded to a millionth, and absent where it is not known.
func TestResultCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deps(strings.NewReader(""), io.Discard, io.Discard)
	h := homeOf(t, d)
	begun := runlog.Event{Type: runlog.Session, Session: "s", Model: "m"}
	usage := runlog.Event{Type: runlog.UsageEvent, Usage: &runlog.Usage{In: 1}, Cost: 0.1 + 0.2}
	unpriced := usage
	unpriced.Unpriced = true
	for name, tc := range map[string]struct {
		engine string
		events []runlog.Event
		known  bool
	}{
		"told":               {"native", []runlog.Event{begun, usage}, true},
		"never begun":        {"native", nil, true},
		"no price":           {"native", []runlog.Event{begun, unpriced}, false},
		"killed":             {"native", []runlog.Event{begun, usage, begun}, false},
		"a script is silent": {"script:x.yaml", []runlog.Event{begun}, true},
	} {
		v := &voice{d: d}
		for _, e := range tc.events {
			v.tally.hear(e)
		}
		a := v.result(h, runlog.Record{Engine: tc.engine, Cost: 0.1 + 0.2}, engine.ErrMaxTurns)
		if (a.Cost != nil) != tc.known || a.Cost != nil && *a.Cost != 0.3 {
			t.Errorf("%s: cost %v, known %v", name, a.Cost, tc.known)
		}
		if u := a.Models["m"]; tc.known && len(tc.events) == 2 && (u.Cost == nil || *u.Cost != 0.3) || name == "no price" && u.Cost != nil {
			t.Errorf("%s: %+v", name, u)
		}
	}
}
