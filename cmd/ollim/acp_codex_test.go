package main

import (
	"sync/atomic"
	"testing"

	"github.com/ollim/ollim/internal/testkit/agentapi"
)

// TestNoSubagentsOnCodex: codex offers its newer models subagents, whatever its settings say; it is kept from starting one.
func TestNoSubagentsOnCodex(t *testing.T) {
	t.Parallel()
	agentapi.InCI(t)
	g := withAgent(t, "codex")
	api := agentapi.New(t)
	var requests atomic.Int32
	var refused atomic.Bool
	api.Handle(func(q agentapi.Request) agentapi.Reply {
		if requests.Add(1) == 1 {
			return agentapi.Use("collaboration/spawn_agent", map[string]string{"task_name": "child", "message": "Do it.", "fork_turns": "none"})
		}
		refused.Store(q.Has("agent thread limit reached"))
		return agentapi.Reply{Text: "ok"}
	})
	g.env = []string{"OPENAI_BASE_URL=" + api.URL() + "/v1"}
	g.is(keyOfAgent, g.argv...)
	g.fire(t, "story")
	if requests.Load() != 2 || !refused.Load() {
		t.Errorf("%d requests, refused: %t", requests.Load(), refused.Load())
	}
}
