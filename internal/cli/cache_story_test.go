package cli

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// kept says for how long a request wants to be kept in the cache of the service.
func kept(t *testing.T, q anthropicapi.Request) string {
	t.Helper()
	marks, hours := bytes.Count(q.Raw, []byte(`"cache_control"`)), bytes.Count(q.Raw, []byte(`"ttl":"1h"`))
	switch {
	case marks == 0:
		return "none"
	case hours == marks:
		return "hour"
	case hours > 0:
		t.Errorf("%d of %d breakpoints last an hour", hours, marks)
	}
	return "minutes"
}

// TestCacheOfTheFirstTurn: a conversation without a past is kept for what is cheapest if its schedule is all that ever fires it, a turn of
// the owner's for some minutes; and the price of that is charged.
func TestCacheOfTheFirstTurn(t *testing.T) {
	t.Parallel()
	const tokens = 100_000
	for name, c := range map[string]struct {
		cron, model string
		more        []string
		want        string
		price       float64 // USD for a million tokens
	}{
		"every half hour":  {"*/30 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, "hour", 4},
		"every hour":       {"0 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, "minutes", 2.50},
		"every 5 minutes":  {"*/5 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, "hour", 4},
		"a branch of main": {"*/30 * * * *", "claude-sonnet-5-5", nil, "hour", 4},
		"every 4 minutes":  {"*/4 * * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, "minutes", 2.50},
		"every two hours":  {"0 */2 * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, "minutes", 2.50},
		"last of the day":  {"*/30 9-10 * * *", "claude-sonnet-5-5", []string{"--session", "persistent"}, "minutes", 2.50},
		"without a past":   {"*/30 * * * *", "claude-sonnet-5-5", []string{"--isolated"}, "minutes", 2.50},
		"nothing pays":     {"0 */2 * * *", "dear", []string{"--session", "persistent"}, "none", 2},
		"price not known":  {"*/30 * * * *", "plain", []string{"--session", "persistent"}, "minutes", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			w.must("config", "set", "models", "dear in=2 out=2 cache-read=1.90 cache-write=3 cache-write-1h=4", "plain in=2 out=2 cache-read=0.2 cache-write=2")
			w.must(append(append([]string{"routine", "add", "watch", "--cron", c.cron, "--background", "--model", c.model}, c.more...), "Look around.")...)
			if name == "last of the day" {
				w.pass(45 * time.Minute)
			}
			use := anthropicapi.Usage{In: 1, Out: 1, CacheWrite: tokens}
			if c.want == "none" {
				use = anthropicapi.Usage{In: tokens, Out: 1}
			}
			api.Reply(anthropicapi.Reply{Text: "quiet", Usage: use})
			w.must("fire", "watch")
			if got := kept(t, api.Requests()[0]); got != c.want {
				t.Errorf("kept for %s, want %s", got, c.want)
			}
			if cost, _ := w.last()["cost"].(float64); math.Abs(cost-tokens*c.price/1e6) > 0.001 {
				t.Errorf("cost %v, want %v", w.last()["cost"], tokens*c.price/1e6)
			}
		})
	}
}

// TestCacheFollowsTheGaps: a conversation is kept as long as the gaps between its turns make it worth the price; fires that a gate ended do
// not count. What that costs is compared with what the next slot, or five minutes for chat, cost before.
func TestCacheFollowsTheGaps(t *testing.T) {
	t.Parallel()
	turns := testkit.Full(16, 5)
	for name, c := range map[string]struct {
		cron  string // "": turns of chat
		gap   time.Duration
		gated int // fires between two that reach the model
		uses  bool
		want  string
	}{
		"gated, a fire in three hours":           {"*/30 * * * *", 3 * time.Hour, 5, true, "minutes"},
		"gated, a request in three hours":        {"*/30 * * * *", 3 * time.Hour, 5, false, "none"},
		"every half hour":                        {"*/30 * * * *", 30 * time.Minute, 0, true, "hour"},
		"exactly hourly":                         {"0 * * * *", time.Hour, 0, true, "minutes"},
		"a branch of main":                       {"*/30 * * * *", 30 * time.Minute, 0, true, "hour"},
		"chat that is answered after 2 minutes":  {"", 2 * time.Minute, 0, true, "minutes"},
		"chat that is answered after 10 minutes": {"", 10 * time.Minute, 0, true, "hour"},
		"chat that is answered after 40 minutes": {"", 40 * time.Minute, 0, true, "hour"},
		"chat that is answered on the next day":  {"", 24 * time.Hour, 0, true, "minutes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, api := newMeteredWorld(t, func(q anthropicapi.Request) anthropicapi.Reply {
				if c.uses && len(q.ToolResults()) == 0 {
					return anthropicapi.Use("list_reminders", map[string]string{})
				}
				return anthropicapi.Reply{Text: "Quiet."}
			})
			w.must("config", "set", "spend.per-day", "none")
			turn := []string{"chat", "go on"}
			switch {
			case name == "a branch of main":
				w.must("chat", "hello")
				w.must("routine", "add", "watch", "--cron", c.cron, "--background", "Look around.")
			case c.cron != "":
				w.writeProgram("gates/closed", "#!/bin/sh\ntest -e open\n")
				w.must("routine", "add", "watch", "--cron", c.cron, "--background", "--session", "persistent", "--gate", "closed", "Look around.")
			}
			if c.cron != "" {
				turn = []string{"fire", "watch"}
			}
			for range turns {
				begun := w.clock()
				w.write("open", "")
				w.must(turn...)
				if c.gated > 0 {
					if err := os.Remove(filepath.Join(w.dir, "open")); err != nil {
						t.Fatal(err)
					}
				}
				for range c.gated {
					w.pass(c.gap / time.Duration(c.gated+1))
					w.must(turn...)
				}
				w.pass(begun.Add(c.gap).Sub(w.clock()))
			}
			all := api.Requests()
			if got := kept(t, all[len(all)-1]); got != c.want {
				t.Errorf("kept for %s, want %s", got, c.want)
			}
			spent := 0.0
			for _, r := range w.runs() {
				cost, _ := r["cost"].(float64)
				spent += cost
			}
			t.Logf("%s: %d turns, %.4f USD", name, turns, spent)
		})
	}
}

// TestBeginningsAreRead: whatever an earlier request of a conversation, of its branches or of a session has put into the service's cache is
// read from there. What a request pays in full is what is new in it.
func TestBeginningsAreRead(t *testing.T) {
	t.Parallel()
	w, api := newMeteredWorld(t, func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Noted."} })
	w.must("config", "set", "spend.per-day", "none")
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "--thinking", "main", "Look around.")
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look around.")
	known := map[string]int{} // tokens that the cache has of a conversation
	asked, anew := 0, 0       // bytes
	turn := func(of, then string, args ...string) {
		t.Helper()
		before := len(api.Requests())
		w.must(args...)
		use, _ := w.last()["usage"].(map[string]any)
		in, read, written := number(use["in"]), number(use["cache_read"]), number(use["cache_write"])
		if read < known[of] {
			t.Errorf("%q read %d tokens from the cache, which has %d", args, read, known[of])
		}
		if new := in + written; known[of] > 0 && new > 400 {
			t.Errorf("%q paid for %d tokens in full", args, new)
		}
		known[then] = max(known[then], read+written)
		for _, q := range api.Requests()[before:] {
			asked, anew = asked+len(q.Raw), anew+4*(in+written)
		}
		w.pass(time.Minute)
	}
	for n := range 20 {
		turn("main", "main", "chat", fmt.Sprintf("%d: %s", n, strings.Repeat("some words ", 60)))
	}
	for range 5 {
		turn("main", "", "fire", "branch")
	}
	for range 10 {
		turn("watch", "watch", "fire", "watch")
	}
	t.Logf("%d bytes in 35 requests, %d of them outside the cache", asked, anew)
}

func number(v any) int { f, _ := v.(float64); return int(f) }

// TestDoctorNamesWhoPaysAgain: a branch of main that thinks otherwise than main cannot use what the service has of main in its cache. Doctor
// says so, until the branch does.
func TestDoctorNamesWhoPaysAgain(t *testing.T) {
	t.Parallel()
	w, _ := newMeteredWorld(t, func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Noted."} })
	w.must("routine", "add", "branch", "--cron", "0 9 * * *", "--background", "Look around.")
	w.must("chat", strings.Repeat("some words ", 6000))
	w.pass(time.Minute)
	w.must("fire", "branch")
	out := w.run("doctor").out
	w.wants(out, "WARN\tcache\tbranch paid again for ", " tokens that the service had in its cache, in 1 request of the last day: about $", "\tset thinking: main in "+filepath.Join(w.dir, "routines/branch.md"))
	w.pass(25 * time.Hour)
	w.write("routines/branch.md", strings.Replace(w.read("routines/branch.md"), "---\n", "---\nthinking: main\n", 1))
	w.must("chat", "And now?")
	w.pass(time.Minute)
	w.must("fire", "branch")
	w.wants(w.run("doctor").out, "PASS\tcache\t2 requests of the last day: none paid again")
}
