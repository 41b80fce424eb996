package claudecode

import (
	"bytes"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestCache: the real command keeps the conversation for as long as its gaps make worth the price, which is what the run is booked.
func TestCache(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	for name, c := range map[string]struct {
		pace  engine.Pace
		marks bool
		hours bool
	}{
		"minutes": {engine.Pace{}, true, false},
		"an hour": {engine.Pace{Gaps: []time.Duration{30 * time.Minute}, Requests: 2}, true, true},
		"none":    {engine.Pace{Gaps: []time.Duration{3 * time.Hour}, Requests: 1}, false, false},
	} {
		n := len(w.api.Requests())
		w.api.Reply(anthropicapi.Reply{Text: "done"})
		r := engine.Request{Input: engine.Input{Prompt: "one"}, Session: engine.Session{Pace: c.pace}}
		if _, err := w.run(r, "Read(./**.md)"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		raw := w.api.Requests()[n].Raw
		marks, hours := bytes.Count(raw, []byte(`"cache_control"`)), bytes.Count(raw, []byte(`"ttl":"1h"`))
		if (marks > 0) != c.marks || (hours > 0) != c.hours || hours > 0 && hours != marks {
			t.Errorf("%s: %d breakpoints, %d of them for an hour", name, marks, hours)
		}
	}
	r := engine.Request{Session: engine.Session{Pace: engine.Pace{Gaps: []time.Duration{30 * time.Minute}}}}
	for name, env := range map[string][]string{
		"a login":         {"CLAUDE_CODE_OAUTH_TOKEN=o"},
		"the owner's own": {"ANTHROPIC_API_KEY=k", "FORCE_PROMPT_CACHING_5M=1"},
	} {
		e := *w.engine
		if e.Env = env; e.cache(r) != engine.CacheMinutes {
			t.Errorf("%s: the cache was chosen", name)
		}
	}
}
