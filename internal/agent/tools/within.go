package tools

import (
	"encoding/json"
	"slices"

	"github.com/ollim/ollim/internal/engine"
)

// Within returns the tools as a subagent has them.
func (b *Set) Within(names []string) engine.Tools {
	if names == nil {
		return b
	}
	narrow := *b
	narrow.within = &names
	return &narrow
}

// names reports whether the subagent's list names a tool.
func (b *Set) names(tool string) bool {
	if b.within == nil || slices.Contains(*b.within, tool) {
		return true
	}
	p := b.policy()
	p.Allow = parse(*b.within)
	return p.Names(tool)
}

// outside returns why the subagent's own list does not allow a use; "" if it does. A tool's name alone allows all its uses.
func (b *Set) outside(tool string, input json.RawMessage) string {
	if b.within == nil || slices.Contains(*b.within, tool) {
		return ""
	}
	p := b.policy()
	p.Allow = parse(*b.within)
	if v := p.Decide(tool, input); !v.Allow {
		return v.Reason
	}
	return ""
}
