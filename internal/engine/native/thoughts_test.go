package native

import (
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
)

// TestPrefixIgnoresEffects: what the service is not sent does not make it another conversation.
func TestPrefixIgnoresEffects(t *testing.T) {
	q := provider.Request{Model: "m", System: "s", Tools: []engine.Tool{{Name: "report", Effect: engine.Changes}}}
	before := prefix(q)
	q.Tools[0].Effect = engine.Reports
	if prefix(q) != before {
		t.Error("another effect is another prefix")
	}
	if q.Tools[0].Description = "Reports."; prefix(q) == before {
		t.Error("another description is the same prefix")
	}
}
