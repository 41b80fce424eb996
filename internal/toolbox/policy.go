package toolbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/toolpolicy"
)

// own is how an engine names our tools.
const own = "mcp__ollim__"

// policy is what the run may do with the tools of its engine.
func (b *Box) policy() toolpolicy.Policy {
	patterns := toolpolicy.DefaultBackground()
	if !background(b.Run.Record) {
		patterns = toolpolicy.DefaultMain()
	}
	p := toolpolicy.Policy{
		Roots:       []toolpolicy.Root{{Dir: string(b.Home), Writable: !background(b.Run.Record)}},
		Protected:   b.Protected(),
		SearchHides: true,
		OwnVerbs:    []string{"pause", "resume", "stop", "chat", "fire", "demo", "session rm", "routine rm", "routine enable", "routine disable"},
	}
	for _, text := range patterns {
		if pattern, err := toolpolicy.Parse(text); err == nil && !strings.HasPrefix(text, own) {
			p.Allow = append(p.Allow, pattern)
		}
	}
	return p
}

// Protected is what no tool of an agent may reach: state, other conversations, the owner's executables and settings.
func (b *Box) Protected() []string {
	paths := []string{
		b.Home.State(), b.Home.Path("sessions"), b.Home.Path("gates"), b.Home.Config(), b.Home.Path("tool-policy.yaml"),
	}
	return append(paths, b.Secret...)
}

// BuiltIns names the tools of its own that the engine should offer.
func (b *Box) BuiltIns() []string { return b.policy().BuiltIns() }

// Verdict decides one use of any tool, and records that it did: a use without a verdict means that nobody was asked. An
// empty reason allows it.
func (b *Box) Verdict(ctx context.Context, tool, id string, input json.RawMessage) (reason string, err error) {
	if name, ours := strings.CutPrefix(tool, own); ours {
		if !slices.ContainsFunc(b.List(), func(t engine.Tool) bool { return t.Name == name }) {
			reason = tool + ": this run does not have this tool"
		}
	} else if v := b.policy().Decide(tool, input); !v.Allow {
		reason = v.Reason
	}
	return reason, b.Run.Event(ctx, run.Event{Type: run.Verdict, Tool: tool, ToolID: id, Text: reason, IsError: reason != ""})
}
