package engine

import (
	"sort"
	"time"

	"github.com/ollim/ollim/internal/state/model"
)

// Full says when a session is compacted without being asked, before it nearly fills the model's window. A zero is no limit.
type Full struct {
	Tokens  int     // the session has so many
	MaxCost float64 // the most that one run may cost, in USD, besides what is left of a day or a month
}

const (
	// FullAt is the part of the model's window, in percent, at which every conversation is compacted automatically.
	FullAt = 80
	// CommonWindow is the window, in tokens, of an unknown model.
	CommonWindow = 100_000
)

// SummaryInstructions are the instructions of an automatic compaction.
const SummaryInstructions = `Keep what is needed to continue the work without the conversation: what was asked for and why, findings and decisions, names,
numbers, dates, paths and identifiers exactly as they are, what is done, what is open, and what comes next.`

// A failed compaction is tried again after retryWait, or when the conversation has grown by one part in retryGrowth of the length at
// which it is compacted, because each try costs money.
const (
	retryGrowth = 16
	retryWait   = 24 * time.Hour
)

// CompactAgain reports whether a conversation of size tokens, which is compacted at a length, is compacted although that failed when it had
// failed tokens, a time ago.
func CompactAgain(size, at, failed int, ago time.Duration) bool {
	return ago >= retryWait || size >= failed+at/retryGrowth
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
