package budget

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/platform/timeparse"
)

// Defaults and bounds of values.
const (
	defaultCapacity, maxCapacity = 5, 1000
	defaultRate, maxRate         = 90, 7 * 24 * 60 // minutes for a token
	maxCount                     = 1_000_000       // pings of a day
)

// stampLayout is Python's isoformat with six digits and a numeric offset, the only form that older readers accept.
const stampLayout = "2006-01-02T15:04:05.000000-07:00"

// file is the content of ping_budget.json; nil if it does not exist.
type file map[string]json.RawMessage

// at returns the bucket now, including the tokens refilled since the file was written.
func (f file) at(now time.Time) Status {
	today := now.Format(time.DateOnly)
	capacity := int(f.number("capacity", defaultCapacity, 0, maxCapacity))
	s := Status{
		Capacity:     capacity,
		Available:    f.number("available", float64(capacity), 0, float64(capacity)),
		RefillEvery:  time.Duration(f.number("refill_rate_minutes", defaultRate, 1, maxRate)) * time.Minute,
		DailyUsed:    f.count("daily_used", "daily_used_reset", today),
		CriticalUsed: f.count("critical_used", "critical_reset_date", today),
	}
	passed := now.Sub(f.instant("last_refill", now))
	s.add(float64(max(passed, 0)) / float64(s.RefillEvery))
	return s
}

// with returns the file with a bucket as it is now and the other keys of f.
func (f file) with(s Status, now time.Time) file {
	today := now.Format(time.DateOnly)
	all := maps.Clone(f)
	if all == nil {
		all = file{}
	}
	for key, value := range map[string]any{
		"capacity": s.Capacity, "available": s.Available, "refill_rate_minutes": int(s.RefillEvery / time.Minute),
		"last_refill": now.Format(stampLayout), "daily_used": s.DailyUsed, "daily_used_reset": today,
		"critical_used": s.CriticalUsed, "critical_reset_date": today,
	} {
		all[key], _ = json.Marshal(value) // numbers that are finite, and texts
	}
	return all
}

// number returns a value within its bounds. A number too large to parse is infinite, and so is clamped too.
func (f file) number(key string, otherwise, low, high float64) float64 {
	n, err := strconv.ParseFloat(string(f[key]), 64)
	if errors.Is(err, strconv.ErrSyntax) {
		n = otherwise
	}
	return min(max(n, low), high)
}

// count returns a number of pings if it is of today, else 0.
func (f file) count(key, dateKey, today string) int {
	if f.text(dateKey) != today {
		return 0
	}
	return int(f.number(key, 0, 0, maxCount))
}

// instant returns a time in ISO 8601 with an optional fraction and offset; without an offset it is in now's zone. An
// invalid time is now.
func (f file) instant(key string, now time.Time) time.Time {
	at, floating, ok := timeparse.ISO(f.text(key))
	switch {
	case !ok:
		return now
	case floating:
		return timeparse.Shown(at, now.Location())
	}
	return at
}

// text returns a string, "" if the value is not one.
func (f file) text(key string) string {
	var s string
	if json.Unmarshal(f[key], &s) != nil {
		return ""
	}
	return s
}
