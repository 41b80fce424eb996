package claudecode

import (
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
)

// TestEnvironment: the agent's Bash, and hooks of its own, can tell which run it is and which slot that answers.
func TestEnvironment(t *testing.T) {
	e := &Engine{Env: []string{"HOME=/h", apiKey + "k"}}
	got := e.environment(engine.Request{Run: "r1", Slot: time.Date(2026, 3, 2, 10, 0, 0, 0, time.FixedZone("", 3600))})
	for _, want := range []string{"HOME=/h", "OLLIM_RUN=r1", "OLLIM_SLOT=2026-03-02T09:00:00Z"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if slices.Contains(got, apiKey+"k") {
		t.Error("the key would be inherited")
	}
	for _, entry := range e.environment(engine.Request{Run: "r1"}) {
		if len(entry) > 10 && entry[:10] == "OLLIM_SLOT" {
			t.Error(entry)
		}
	}
}
