package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestPromptsOfAMonth: what the model is asked on the first, the fifteenth and the thirtieth day of each kind of job, as it is sent: the
// system prompt and the last message. A month of the same work changes nothing but what is said of the day.
// Unless CI=true it ends on the fifteenth day.
func TestPromptsOfAMonth(t *testing.T) {
	t.Parallel()
	asked := 0
	w, api := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
		asked++
		if asked%29 == 0 && len(q.ToolResults()) == 0 && strings.Contains(q.LastUserText(), "-bg:") {
			return anthropicapi.Use("report_updates", map[string]string{"message": "The load was high for an hour."})
		}
		return anthropicapi.Reply{Text: "All quiet: nothing to report today."}
	})
	w.writeProgram("gates/heartbeat", "#!/bin/sh\necho 'load 0.41, disk 63 %'\n")
	kinds := map[string][]string{
		"persistent": {"--cron", "0 10 * * *", "--background", "--session", "persistent", "--description", "Market watch", "Look at the market and keep a running analysis."},
		"isolated":   {"--cron", "5 10 * * *", "--background", "--isolated", "--description", "Deadlines", "Check today's deadlines."},
		"forked":     {"--cron", "10 10 * * *", "--background", "--description", "Evening plan", "Plan the evening."},
		"foreground": {"--cron", "15 10 * * *", "--description", "Briefing", "Brief me."},
		"heartbeat":  {"--cron", "20,25 10 * * *", "--background", "--session", "persistent", "--gate", "heartbeat", "--update-main-session", "freely", "--description", "Heartbeat", "Judge what the gate says."},
	}
	order := []string{"persistent", "isolated", "forked", "foreground", "heartbeat"}
	daily := append(slices.Clone(order), "heartbeat") // of its two fires of a day the second one is kept
	for _, kind := range order {
		w.must(append([]string{"routine", "add", kind}, kinds[kind]...)...)
	}
	first := map[string]string{}
	for day := 1; day <= testkit.Full(30, 15); day++ {
		morning := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC).AddDate(0, 0, day-1)
		for n, kind := range daily {
			if at := morning.Add(time.Duration(5*n) * time.Minute); at.After(w.clock()) {
				w.pass(at.Sub(w.clock()))
			}
			kept := (day == 1 || day == 15 || day == 30) && (kind != "heartbeat" || n == len(daily)-1)
			before := len(api.Requests())
			w.must("fire", kind)
			if !kept {
				continue
			}
			q := api.Requests()[before]
			system := q.System
			if day == 1 {
				first[kind] = system
			} else if system == first[kind] {
				system = "(as on day 1)"
			}
			goldenPrompt(t, fmt.Sprintf("%s-day%02d", kind, day), fmt.Sprintf("SYSTEM PROMPT\n\n%s\n\nLAST MESSAGE\n\n%s", system, q.LastUserText()))
		}
	}
}

func goldenPrompt(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "prompts", name+".txt")
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew)\n got %s\nwant %s", path, got, want)
	}
}

// TestAgentCompactsOnItsContext: an agent that is told how long its session is has it compacted when that is more than half of what it
// may have, and long before it is done without the agent.
func TestAgentCompactsOnItsContext(t *testing.T) {
	t.Parallel()
	compacted := 0
	w, _ := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
		for line := range strings.Lines(q.LastUserText()) {
			var have, full float64
			var share int
			if n, _ := fmt.Sscanf(line, "CONTEXT: %fk of %fk tokens (%d %%)", &have, &full, &share); n == 3 && share >= 50 && len(q.ToolResults()) == 0 {
				compacted++
				return anthropicapi.Use("compact_session", map[string]string{"instructions": "Keep the levels."})
			}
		}
		return anthropicapi.Reply{Text: "Noted."}
	})
	w.must("config", "set", "compact-at", "30000")
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Read the input.")
	for n := range 20 {
		if r := w.pipe(strings.Repeat(fmt.Sprintf("fire %d: a line of the input.\n", n), 300), "fire", "watch", "-"); r.status != 0 {
			t.Fatalf("fire %d: %s", n+1, r.errOut)
		}
		if size, _ := w.last()["context"].(float64); size > 25_000 {
			t.Errorf("fire %d: the session has %.0f tokens", n+1, size)
		}
		w.pass(24 * time.Hour)
	}
	if compacted < 2 {
		t.Errorf("the agent compacted its session %d times in 20 fires", compacted)
	}
	var plan struct{ Prompt string }
	if err := json.Unmarshal([]byte(w.must("fire", "--dry-run", "--json", "watch")), &plan); err != nil || !strings.Contains(plan.Prompt, "[routine-bg:") {
		t.Errorf("%v: %s", err, plan.Prompt)
	}
}
