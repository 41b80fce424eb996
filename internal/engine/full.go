package engine

import (
	"sort"

	"github.com/ollim/ollim/internal/state/model"
)

// Full says when a session is compacted without being asked, before it nearly fills the model's window. A zero is no limit.
type Full struct {
	Tokens  int     // the session has so many
	MaxCost float64 // the most that one run may cost, in USD, besides what is left of a day or a month
}

// leastFull is the length in tokens below which no limit of money compacts a session: the instructions, the tools and a summary have
// as many.
const leastFull = 8000

// At returns the length, in tokens, at which a session is compacted: window at most, Tokens, or the length that a request costs half of
// MaxCost for when nothing of it is in the service's cache. The other half pays for the summary and for the work.
func (f Full) At(m model.Model, window int) int {
	at := window
	if f.Tokens > 0 {
		at = min(at, f.Tokens)
	}
	if f.MaxCost > 0 && m.Priced {
		dear := sort.Search(at, func(n int) bool { return m.Question(n, 0) > f.MaxCost/2 })
		at = min(at, max(dear, leastFull))
	}
	return at
}
