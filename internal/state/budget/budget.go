// Package budget is the token bucket that limits how often background runs may ping their owner. A ping takes one token;
// tokens are refilled over time, up to the capacity. No process refills them: the current number is computed on every read,
// and written only with a change.
//
// On disk: state/ping_budget.json, changed under the lock "ping_budget", absent until something was taken or set:
//
//	{
//	  "capacity": 5,
//	  "available": 3.25,                                 tokens at last_refill
//	  "refill_rate_minutes": 90,                         for one token
//	  "last_refill": "2026-02-24T14:30:00.000000+01:00",
//	  "daily_used": 2,                                   pings on the day that daily_used_reset names
//	  "daily_used_reset": "2026-02-24",
//	  "critical_used": 0,                                the same of critical ones, which take no token
//	  "critical_reset_date": "2026-02-24"
//	}
//
// Days are those of the book's zone; a count of any other day than today is 0. A missing value, or one of the wrong type, has
// its default (a full bucket of 5, a token every 90 minutes); a value out of bounds counts as the bound. Keys that this
// version does not know are kept.
//
// Setting the clock back removes no tokens: they are kept, and are refilled again from the time of the next change, which may
// be a refused Take.
package budget

import (
	"fmt"
	"math"
	"time"
)

// Status is the bucket at one instant.
type Status struct {
	Capacity     int
	Available    float64       // tokens, fractional; a ping needs a whole one
	RefillEvery  time.Duration // for one token
	NextRefill   time.Duration // until the next whole token; 0 when the bucket is full
	DailyUsed    int           // pings today, in the configured zone, without critical ones
	CriticalUsed int           // critical pings today
}

// String returns the bucket in one line, such as "budget: 3/5 (next refill in 42 min)".
func (s Status) String() string {
	next := "full"
	switch {
	case s.Capacity <= 0:
		next = "critical pings only"
	case s.NextRefill > 0:
		next = fmt.Sprintf("next refill in %.0f min", math.Ceil(s.NextRefill.Minutes()))
	}
	return fmt.Sprintf("budget: %d/%d (%s)", int(s.Available), s.Capacity, next)
}

// Full returns String and, in a second line, the use of today: "used today: 2. critical bypasses: 1."
func (s Status) Full() string {
	return fmt.Sprintf("%s\nused today: %d. critical bypasses: %d.", s, s.DailyUsed, s.CriticalUsed)
}

// Refills returns the number of whole tokens that the bucket gains within a time from now if none is taken.
func (s Status) Refills(within time.Duration) int {
	if s.NextRefill <= 0 || s.RefillEvery <= 0 || within < s.NextRefill {
		return 0
	}
	gained := 1 + (within-s.NextRefill)/s.RefillEvery
	return int(min(gained, time.Duration(s.Capacity-int(s.Available))))
}

// speck is the rounding error of sums of fractions: a token that lacks no more than this is whole. It is 5 ms of 90
// minutes.
const speck = 1e-6

// add adds tokens, up to the capacity.
func (s *Status) add(tokens float64) {
	s.Available = min(max(s.Available+tokens, 0), float64(s.Capacity))
	if whole := math.Round(s.Available); math.Abs(s.Available-whole) <= speck {
		s.Available = whole
	}
	s.NextRefill = 0
	if s.Available < float64(s.Capacity) {
		missing := math.Floor(s.Available) + 1 - s.Available
		s.NextRefill = time.Duration(missing * float64(s.RefillEvery)).Round(time.Microsecond)
	}
}
