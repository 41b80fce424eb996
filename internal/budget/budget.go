// Package budget is the token bucket that bounds how often background runs may ping their owner.
package budget

import "time"

// Status is the bucket at one instant.
type Status struct {
	Capacity     int
	Available    float64       // tokens, fractional; a ping needs a whole one
	RefillEvery  time.Duration // for one token
	NextRefill   time.Duration // until the next whole token; 0 when the bucket is full
	DailyUsed    int           // pings today, in the configured zone, critical ones left out
	CriticalUsed int           // critical pings today
}
