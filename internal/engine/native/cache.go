package native

import (
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/model"
)

// usualRequests is the number of requests of a turn where nothing is known: a use of a tool, and the answer.
const usualRequests = 2

// cache returns for how long the service is asked to keep the conversation, and the model with the prices of that: what is expected to be
// cheapest by the gaps between the conversation's turns. Only Anthropic's API offers a choice.
func (e *Engine) cache(m model.Model, pace engine.Pace) (model.Model, provider.Cache) {
	if e.Service.Name != anthropic || len(pace.Gaps) == 0 || !m.Priced {
		return m, provider.CacheMinutes
	}
	requests := max(1, pace.Requests)
	if pace.Requests == 0 {
		requests = usualRequests
	}
	chosen, life := m, provider.CacheMinutes
	cheapest := expense(m, pace.Gaps, engine.CacheLife, requests)
	if hourly, known := m.Hourly(); known {
		if cost := expense(hourly, pace.Gaps, engine.CacheHour, requests); cost < cheapest {
			chosen, life, cheapest = hourly, provider.CacheHour, cost
		}
	}
	if requests*m.Price.In < cheapest {
		chosen, life = m, provider.CacheNone
	}
	return chosen, life
}

// expense is what the beginning of a conversation is expected to cost in a turn, for a million tokens: it is read from the cache after the
// gaps that life covers, written to it after the others, and read by every further request of the turn.
func expense(m model.Model, gaps []time.Duration, life time.Duration, requests float64) float64 {
	hits := 0
	for _, gap := range gaps {
		if gap <= life {
			hits++
		}
	}
	hit := float64(hits) / float64(len(gaps))
	return hit*m.Price.CacheRead + (1-hit)*m.Price.CacheWrite + (requests-1)*m.Price.CacheRead
}
