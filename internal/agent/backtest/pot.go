package backtest

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/ollim/ollim/internal/engine"
)

// pot is the money of a backtest, in USD. The runs that are asked at the same time reserve what their next request may cost.
type pot struct {
	mu    sync.Mutex
	freed *sync.Cond // a purse gave something back
	left  float64    // neither spent nor reserved
	held  int        // purses with a reservation
	stuck int        // those of them that wait
}

// newPot returns the pot of a backtest whose verdicts so far have cost something. 0 is no limit.
func newPot(most float64, known []Verdict) *pot {
	p := &pot{left: math.Inf(1)}
	p.freed = sync.NewCond(&p.mu)
	if most > 0 {
		p.left = most
	}
	for _, v := range known {
		p.left -= v.Is.Cost + v.JudgeCost
	}
	return p
}

// purse is what one run has reserved.
type purse struct {
	pot  *pot
	have float64
}

func (p *pot) open() *purse { return &purse{pot: p} }

// raise raises the reservation to between least and most. It waits for what other runs may give back. The error is an ErrMaxCost.
func (w *purse) raise(ctx context.Context, least, most float64) (float64, error) {
	p := w.pot
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
		p.freed.Wait()
		p.stuck -= mine
	}
	if more := min(most, w.have+p.left) - w.have; more > 0 {
		if w.have == 0 {
			p.held++
		}
		w.have, p.left = w.have+more, p.left-more
	}
	return w.have, nil
}

// close gives back what the run did not spend.
func (w *purse) close(spent float64) {
	p := w.pot
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.have > 0 {
		p.held--
	}
	p.left += w.have - spent
	w.have = 0
	p.freed.Broadcast()
}
