package cli

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// morning is routines that are due in one minute, what they may cost, and what the model does in each.
type morning struct {
	routines       int
	perRun, perDay float64
	steps          int // tool uses before the end
	out            int // tokens that each answer wants
	cached         bool
}

func mornings() *rapid.Generator[morning] {
	return rapid.Custom(func(t *rapid.T) morning {
		return morning{
			routines: rapid.IntRange(1, 6).Draw(t, "routines"),
			perRun:   float64(rapid.IntRange(4, 60).Draw(t, "per-run")) / 100,
			perDay:   float64(rapid.IntRange(4, 60).Draw(t, "per-day")) / 100,
			steps:    rapid.IntRange(0, 3).Draw(t, "steps"),
			out:      rapid.IntRange(1, 6000).Draw(t, "out"),
			cached:   rapid.Bool().Draw(t, "cached"),
		}
	})
}

// price of the model sonnet, in USD for a token.
const priceIn, priceOut, priceRead, priceWrite = 2e-6, 10e-6, 0.1e-6, 2.5e-6

// TestLimitsHoldAndSlotsAreAnswered: whatever runs at once, neither a run nor a day costs more than its limit, the accounts
// hold what the service charged, and no slot is left without a run while a request could be paid for.
func TestLimitsHoldAndSlotsAreAnswered(t *testing.T) {
	t.Parallel()
	seeds := 3
	if testkit.CI() {
		seeds = 8
	}
	for seed := range seeds {
		m := mornings().Example(seed)
		t.Run(fmt.Sprintf("%+v", m), func(t *testing.T) { m.passes(t) })
	}
}

func (m morning) passes(t *testing.T) {
	w, api := newNativeWorld(t)
	w.slots(m.routines)
	w.must("config", "set", "spend.per-run", fmt.Sprint(m.perRun))
	w.must("config", "set", "spend.per-day", fmt.Sprint(m.perDay))
	var mu sync.Mutex
	charged := 0.0
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		reply, usd := m.answer(q)
		mu.Lock()
		defer mu.Unlock()
		charged += usd
		return reply
	})
	for range 15 {
		w.fireAll(w.due()...)
		w.pass(time.Minute)
	}
	w.pass(5 * time.Minute)
	w.must("tick") // notes what was missed
	if due := w.due(); due != nil {
		t.Errorf("due after 20 minutes: %q", due)
	}
	const odd = 1e-6 * 100 // millionths, by which sums of so many requests may be wrong
	if charged > m.perDay+odd {
		t.Errorf("the day cost %v, of %v", charged, m.perDay)
	}
	if spent := w.spentToday(); spent < charged-odd || spent > charged+odd {
		t.Errorf("the accounts hold %v, the service charged %v", spent, charged)
	}
	answered := map[any]bool{}
	for _, r := range w.runs() {
		if cost := r["cost"].(float64); cost > m.perRun+odd {
			t.Errorf("%v cost %v, of %v", r["name"], cost, m.perRun)
		}
		answered[r["name"]] = r["outcome"] == "ok" || r["outcome"] == "failed"
	}
	const dearest = 0.035 // USD, of the first request of such a run with the shortest answer
	for i := range m.routines {
		if name := fmt.Sprint("r", i+1); !answered[name] && m.perDay-charged > dearest {
			t.Errorf("%s did not run, and %v were left", name, m.perDay-charged)
		}
	}
}

// answer is what the model does, and what the service charges for it.
func (m morning) answer(q anthropicapi.Request) (anthropicapi.Reply, float64) {
	said := 0
	for _, message := range q.Messages {
		if message.Role == "assistant" {
			said++
		}
	}
	reply := anthropicapi.Reply{Text: "done"}
	if said < m.steps {
		reply = anthropicapi.Use("list_reminders", nil)
	}
	in, out := len(q.Raw)/4, min(m.out, q.MaxTokens)
	if out < m.out {
		reply = anthropicapi.Reply{Text: "and so", StopReason: "max_tokens"}
	}
	reply.Usage = anthropicapi.Usage{In: in, Out: out}
	usd := float64(in)*priceIn + float64(out)*priceOut
	if m.cached {
		read := 0
		if said > 0 {
			read = in * 9 / 10
		}
		reply.Usage = anthropicapi.Usage{CacheRead: read, CacheWrite: in - read, Out: out}
		usd = float64(read)*priceRead + float64(in-read)*priceWrite + float64(out)*priceOut
	}
	return reply, usd
}
