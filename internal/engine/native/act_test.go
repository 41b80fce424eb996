package native

import (
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// effects returns tools whose names are those of their effects.
func effects() []engine.Tool {
	return []engine.Tool{
		{Name: "read", Effect: engine.ReadsOnly}, {Name: "change"}, {Name: "delete", Effect: engine.Deletes}, {Name: "send", Effect: engine.Sends},
		{Name: "compact", Effect: engine.Compacts},
	}
}

type agentEffects struct{ engine.Tools }

func (agentEffects) List() []engine.Tool { return effects() }

type ownEffects struct{ BuiltIns }

func (ownEffects) List([]string) []engine.Tool { return effects() }

// TestDurability: a kill may lose an answer that only reads. Whether it only reads is said by the tools, whoever has them.
func TestDurability(t *testing.T) {
	answer := func(names ...string) (m transcript.Message) {
		for _, name := range names {
			m.Content = append(m.Content, transcript.Block{Type: transcript.ToolUse, Name: name})
		}
		return m
	}
	for whose, tools := range map[string]*toolbox{
		"own": {own: ownEffects{}, servers: none{}}, "inner": {inner: effects(), servers: none{}},
		"agent": {agent: agentEffects{}, servers: none{}}, "server": {offered: effects()},
	} {
		turn := &turn{tools: tools}
		for _, lost := range [][]string{{"read"}, {"read", "read"}} {
			if turn.durability(answer(lost...)) != store.Buffered {
				t.Errorf("%s: %q is synced", whose, lost)
			}
		}
		for _, kept := range [][]string{{}, {"change"}, {"delete"}, {"send"}, {"compact"}, {"unknown"}, {"read", "change"}, {"list_reminders"}, {"search_docs"}} {
			if turn.durability(answer(kept...)) != store.Synced {
				t.Errorf("%s: %q is not synced", whose, kept)
			}
		}
	}
}
