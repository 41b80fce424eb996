package replay

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/policy"
)

// recorded is the tools of a run. They are listed as today, and answer from the record.
type recorded struct {
	engine.Tools

	w *walk
}

// Call implements engine.Tools and native.BuiltIns: it answers a use of a tool from the record.
func (t recorded) Call(_ context.Context, name string, _ json.RawMessage) engine.ToolResult {
	return t.w.use(name)
}

// Verdict gives the verdict of the record, so that the conversation goes on as it did. The verdict of today is compared later.
func (t recorded) Verdict(_ context.Context, _, id string, _ json.RawMessage) (string, error) {
	if e := t.w.kept.judged[id]; e.IsError {
		return e.Text, nil
	}
	return "", nil
}

// Within implements engine.Tools.
func (t recorded) Within(names []string) engine.Tools { return recorded{t.Tools.Within(names), t.w} }

// Judged implements engine.Tools.
func (recorded) Judged() (map[string]bool, error) { return nil, nil }

// Nudge implements engine.Tools. A reminder comes from the record.
func (recorded) Nudge(context.Context) (string, error) { return "", nil }

// builtIns are the engine's own tools.
type builtIns struct {
	native.BuiltIns

	w *walk
}

func (t builtIns) Call(_ context.Context, name string, _ json.RawMessage) engine.ToolResult {
	return t.w.use(name)
}

// servers are the tools of MCP servers, as the first request of the run describes them. Today's patterns choose among them.
type servers struct {
	w        *walk
	patterns []string
}

// Known implements native.Servers.
func (s servers) Known() (list []engine.Tool) {
	sent, err := s.w.kept.parse(max(1, s.w.first))
	if err != nil {
		return nil
	}
	var p policy.Policy
	for _, text := range s.patterns {
		if pattern, err := policy.Parse(text); err == nil {
			p.Allow = append(p.Allow, pattern)
		}
	}
	for _, t := range sent.Tools {
		if strings.HasPrefix(t.Name, "mcp__") && p.Names(t.Name) {
			list = append(list, t)
		}
	}
	return list
}

// List implements native.Servers.
func (s servers) List(context.Context) []engine.Tool { return s.Known() }

// Failures implements native.Servers.
func (servers) Failures() map[string][]string { return nil }

// Close implements native.Servers.
func (servers) Close() {}

// Call implements native.Servers.
func (s servers) Call(_ context.Context, name string, _ json.RawMessage) engine.ToolResult {
	return s.w.use(name)
}
