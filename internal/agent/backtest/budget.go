package backtest

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/ollim/ollim/internal/engine"
)

// grow is Backtest.Raise.
type grow func(ctx context.Context, least, most float64) (float64, error)

// budget is the money of a backtest, in USD. The runs that are asked at the same time reserve what their next request may cost.
type budget struct {
	mu    sync.Mutex
	freed *sync.Cond // a run gave something back
	left  float64    // neither spent nor reserved
	held  int        // runs with a reservation
	stuck int        // those of them that wait
	total float64    // spent and reserved by this process
	grow  grow       // raises what the backtest has of the spending limits; nil: they do not bind it
}

// newBudget returns what a backtest may still spend: most less the cost of the verdicts so far. 0 is no limit.
func newBudget(most float64, known []Verdict, grow grow) *budget {
	p := &budget{left: math.Inf(1), grow: grow}
	p.freed = sync.NewCond(&p.mu)
	if most > 0 {
		p.left = most
	}
	for _, v := range known {
		p.left -= v.Is.Cost + v.JudgeCost
	}
	return p
}

// reservation is what one run has reserved.
type reservation struct {
	of   *budget
	have float64
}

func (p *budget) open() *reservation { return &reservation{of: p} }

// raise raises the reservation to between least and most. It waits for what other runs may give back. The error is an ErrMaxCost.
func (w *reservation) raise(ctx context.Context, least, most float64) (float64, error) {
	p := w.of
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := 0
	if w.have > 0 {
		mine = 1
	}
	for w.have+p.left < least {
		if p.held-p.stuck == mine || ctx.Err() != nil { // nobody will give anything back
			return 0, fmt.Errorf("%w: the next request may cost %s USD, and %s are left", engine.ErrMaxCost, engine.USD(least-w.have), engine.USD(max(0, p.left)))
		}
		p.stuck += mine
		p.freed.Wait() // close has set stuck to 0
	}
	if more := min(most, w.have+p.left) - w.have; more > 0 {
		if p.grow != nil {
			got, err := p.grow(ctx, p.total+max(0, least-w.have), p.total+more)
			if err != nil {
				return 0, err
			}
			more = min(more, got-p.total)
		}
		p.total += more
		if w.have == 0 {
			p.held++
		}
		w.have, p.left = w.have+more, p.left-more
	}
	return w.have, nil
}

// close gives back what the run did not spend.
func (w *reservation) close(spent float64) {
	p := w.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.have > 0 {
		p.held--
	}
	p.left += w.have - spent
	p.total += spent - w.have
	w.have, p.stuck = 0, 0 // those that wait look again
	p.freed.Broadcast()
}
