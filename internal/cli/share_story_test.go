package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestShareOfTheLength: chat warns once at 60 and once at 75 percent of the length at which the session is compacted, the record has the figures, and a
// compaction reports what it did.
func TestShareOfTheLength(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "models", "small window=10000 output=1000 in=1 out=2")
	w.must("config", "set", "native.model", "small")
	length := 0
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if isSummary(q) {
			return anthropicapi.Reply{Text: "the summary", Usage: anthropicapi.Usage{In: length, Out: 5}}
		}
		return anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: length - 10, Out: 10}}
	})
	for _, step := range []struct {
		length int
		warn   string
	}{
		{4700, ""}, {4900, "has 61 % of the length at which it is compacted (4900 of 8000 tokens)"}, {5900, ""},
		{6100, "has 76 % of the length at which it is compacted (6100 of 8000 tokens)"}, {7700, ""},
	} {
		length = step.length
		w.pass(time.Hour)
		r := w.run("chat", "go on")
		if step.warn == "" && strings.Contains(r.errOut, "compacted") || !strings.Contains(r.errOut, step.warn) {
			t.Errorf("%d: %s", step.length, r.errOut)
		}
		if last := w.last(); last["context"] != float64(step.length) || last["window"] != 10_000.0 || last["compact_at"] != 8_000.0 {
			t.Errorf("%d: %v of %v, %v", step.length, last["context"], last["window"], last["compact_at"])
		}
	}
	r := w.run("session", "compact", "main", "keep it short")
	if !strings.Contains(r.errOut, "compacted 5 turns, the first 4 hours ago: 77") || !strings.Contains(r.errOut, " after") || !strings.HasPrefix(r.out, "n-") {
		t.Errorf("%+v", r)
	}
	length = 6500
	if r := w.run("chat", "go on"); !strings.Contains(r.errOut, "has 81 %") {
		t.Errorf("after a compaction: %s", r.errOut)
	}
}
