package engine

import (
	"time"

	"github.com/ollim/ollim/internal/state/model"
)

// Pace is how a conversation goes on, by its past turns or, if it has none, by its schedule.
type Pace struct {
	Gaps     []time.Duration // from the end of a turn to the beginning of the next; none if nothing is known
	Requests float64         // to the model in a turn, on average; 0: not known
}

// Cache is for how long a service keeps the beginning of a conversation, which later requests then read for less.
type Cache int

// The values of Cache.
const (
	CacheMinutes Cache = iota
	CacheHour
	CacheNone // it is not kept
)

// usualRequests is the number of requests of a turn where nothing is known: a use of a tool, and the answer.
const usualRequests = 2

// Cheapest returns for how long the service is best asked to keep the conversation, and the model with the prices of that. Without gaps or
// prices it is some minutes.
func (p Pace) Cheapest(m model.Model) (model.Model, Cache) {
	if len(p.Gaps) == 0 || !m.Priced {
		return m, CacheMinutes
	}
	if p.Requests == 0 {
		p.Requests = usualRequests
	}
	p.Requests = max(1, p.Requests)
	chosen, life, cheapest := m, CacheMinutes, p.expense(m, CacheLife)
	if hourly, known := m.Hourly(); known {
		if cost := p.expense(hourly, CacheHourLife); cost < cheapest {
			chosen, life, cheapest = hourly, CacheHour, cost
		}
	}
	if p.Requests*m.Price.In < cheapest {
		chosen, life = m, CacheNone
	}
	return chosen, life
}

// expense is what the beginning of a conversation is expected to cost in a turn, for a million tokens: it is read from the cache after the
// gaps that life covers, written to it after the others, and read by every further request of the turn.
func (p Pace) expense(m model.Model, life time.Duration) float64 {
	hits := 0
	for _, gap := range p.Gaps {
		if gap <= life {
			hits++
		}
	}
	hit := float64(hits) / float64(len(p.Gaps))
	return hit*m.Price.CacheRead + (1-hit)*m.Price.CacheWrite + (p.Requests-1)*m.Price.CacheRead
}
