package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/model"
)

func TestCheapest(t *testing.T) {
	sonnet := model.Known().Resolve("claude-sonnet-5-5")
	every := func(gap time.Duration) []time.Duration { return slices.Repeat([]time.Duration{gap}, 20) }
	for name, c := range map[string]struct {
		model model.Model
		pace  Pace
		want  Cache
	}{
		"nothing known":             {sonnet, Pace{}, CacheMinutes},
		"no price":                  {model.Model{ID: "x"}, Pace{Gaps: every(time.Hour)}, CacheMinutes},
		"quick answers":             {sonnet, Pace{every(2 * time.Minute), 1}, CacheMinutes},
		"ten minutes":               {sonnet, Pace{every(10 * time.Minute), 1}, CacheHour},
		"forty minutes":             {sonnet, Pace{every(40 * time.Minute), 1}, CacheHour},
		"exactly an hour":           {sonnet, Pace{every(time.Hour), 2}, CacheMinutes},
		"three hours, with tools":   {sonnet, Pace{every(3 * time.Hour), 2}, CacheMinutes},
		"three hours, one request":  {sonnet, Pace{every(3 * time.Hour), 1}, CacheNone},
		"three hours, not known":    {sonnet, Pace{every(3 * time.Hour), 0}, CacheMinutes},
		"eight at once, then later": {sonnet, Pace{append(every(0)[:7], 30*time.Minute), 1}, CacheHour},
		"eight at once, then a day": {sonnet, Pace{append(every(0)[:7], 24*time.Hour), 1}, CacheMinutes},
		"half within the hour":      {sonnet, Pace{append(every(30 * time.Minute)[:10], every(3 * time.Hour)[:10]...), 2}, CacheHour},
		"a third within the hour":   {sonnet, Pace{append(every(30 * time.Minute)[:6], every(3 * time.Hour)[:14]...), 2}, CacheMinutes},
	} {
		m, got := c.pace.Cheapest(c.model)
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if want := map[bool]float64{true: 4, false: 2.5}[got == CacheHour]; c.model.Priced && m.Price.CacheWrite != want {
			t.Errorf("%s: priced at %v, want %v", name, m.Price.CacheWrite, want)
		}
	}
}
