package cli

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestCacheLastsUntilTheNextFire: the one-hour cache is asked for, and its price charged, where the routine fires again after 5 to 60
// minutes and goes on from the same beginning, and where the model's prices say that it pays.
func TestCacheLastsUntilTheNextFire(t *testing.T) {
	t.Parallel()
	const tokens = 100_000
	for name, c := range map[string]struct {
		cron, model string
		more        []string
		hour        bool
		price       float64 // USD for a million tokens
	}{
		"every half hour":  {"*/30 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, true, 4},
		"every hour":       {"0 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, true, 4},
		"every 5 minutes":  {"*/5 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, true, 4},
		"a branch of main": {"*/30 * * * *", "claude-sonnet-5-5", nil, true, 4},
		"every 4 minutes":  {"*/4 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, false, 2.50},
		"every two hours":  {"0 */2 * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, false, 2.50},
		"last of the day":  {"*/30 9-10 * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, false, 2.50},
		"without a past":   {"*/30 * * * *", "claude-sonnet-5-5", []string{"--isolated"}, false, 2.50},
		"it does not pay":  {"*/30 * * * *", "dear", []string{"--session", "persistent"}, false, 2},
		"price not known":  {"*/30 * * * *", "plain", []string{"--session", "persistent"}, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			w.must("config", "set", "models", "dear in=2 out=2 cache-read=1 cache-write=2 cache-write-1h=4", "plain in=2 out=2 cache-write=2")
			w.must(append(append([]string{"routine", "add", "watch", "--cron", c.cron, "--background", "--model", c.model}, c.more...), "Look around.")...)
			if name == "last of the day" {
				w.pass(45 * time.Minute)
			}
			api.Reply(anthropicapi.Reply{Text: "quiet", Usage: anthropicapi.Usage{In: 1, Out: 1, CacheWrite: tokens}})
			w.must("fire", "watch")
			raw := api.Requests()[0].Raw
			marks, hours := bytes.Count(raw, []byte(`"cache_control"`)), bytes.Count(raw, []byte(`"ttl":"1h"`))
			if marks == 0 || c.hour && hours != marks || !c.hour && hours != 0 {
				t.Errorf("%d of %d breakpoints last an hour, want it: %v", hours, marks, c.hour)
			}
			if cost, _ := w.last()["cost"].(float64); math.Abs(cost-tokens*c.price/1e6) > 0.001 {
				t.Errorf("cost %v, want %v", w.last()["cost"], tokens*c.price/1e6)
			}
		})
	}
}
