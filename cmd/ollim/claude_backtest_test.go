package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestBacktestOfClaude: what the claude command asked is asked again by the native engine, with the tools and results of the record.
func TestBacktestOfClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	h := newFixture(t)
	h.ok("config", "set", "delivery.command", "true")
	h.ok("config", "set", "native.base-url", h.api.URL())
	h.routine("disk", "--isolated", "--update-main-session", "freely", "--allowed-tools", "Read(./**)")
	var silent atomic.Bool
	file := filepath.Join(h.data, "routines", "open.md")
	h.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		switch results := q.ToolResults(); {
		case !strings.Contains(string(q.Raw), "Look around."):
			return anthropicapi.Reply{Text: "Fine."}
		case len(results) == 0:
			return anthropicapi.Use("Read", map[string]string{"file_path": file})
		case strings.Contains(results[0].ResultText, "PUBLIC") && !silent.Load():
			return anthropicapi.Use("mcp__ollim__ping_user", map[string]string{"message": "It is public."})
		}
		return anthropicapi.Reply{Text: "Done."}
	})
	h.ok("fire", "disk")
	h.ok("fire", "disk")
	ask := func(want string) {
		t.Helper()
		n := len(h.api.Requests())
		text, _ := h.cmd("backtest", "disk", "--model", "claude-sonnet-5-5", "--thinking", "off", "--json").Output() // its status tells of two runs only
		out := strings.TrimSpace(string(text))
		lines := strings.Split(out, "\n")
		for _, line := range lines {
			var v struct{ Verdict, Why string }
			if err := json.Unmarshal([]byte(line), &v); err != nil || v.Verdict != want {
				t.Errorf("want %s: %v, %.600s", want, err, line)
			}
		}
		asked := h.api.Requests()[n:]
		if len(lines) != 2 || len(asked) < 4 {
			t.Fatalf("%d verdicts, %d requests: %s", len(lines), len(asked), out)
		}
		for _, q := range asked {
			if !strings.Contains(q.System, "for your owner") || !strings.Contains(string(q.Raw), `"mcp__ollim__ping_user"`) || !strings.Contains(string(q.Raw), `"name":"Read"`) {
				t.Errorf("the system prompt or the tools are not those of the record: %.300s", q.Raw)
			}
		}
	}
	ask("same")
	silent.Store(true)
	ask("missed")
}
