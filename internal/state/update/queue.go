package update

import (
	"slices"
	"time"

	"github.com/ollim/ollim/internal/state/ledger"
)

// pending is a part of the queue.
type pending struct {
	Omitted int       `json:"omitted,omitempty"` // number of updates that the sentinel counts; 0: there is no sentinel
	Since   time.Time `json:"since,omitzero"`    // ts of the sentinel: that of the newest update it counts
	Updates []Update  `json:"updates,omitempty"` // ts strictly increasing
}

func (p pending) empty() bool { return p.Omitted == 0 && len(p.Updates) == 0 }

// list returns the queue as readers see it.
func (p pending) list(zone *time.Location) (list []Update) {
	if p.Omitted > 0 {
		list = append(list, p.sentinel())
	}
	list = append(list, p.Updates...)
	for i := range list {
		list[i].TS = list[i].TS.In(zone)
	}
	return list
}

func (p pending) sentinel() Update { return Update{TS: p.Since, Message: sentinel(p.Omitted)} }

// newest returns the latest ts, zero if the queue is empty.
func (p pending) newest() time.Time {
	newest := p.Since
	for _, u := range p.Updates {
		newest = latest(newest, u.TS)
	}
	return newest
}

// over returns the oldest updates, which the cap drops.
func (p pending) over() []Update {
	space := maxEntries
	if p.Omitted > 0 || len(p.Updates) > maxEntries {
		space = maxEntries - 1
	}
	return p.Updates[:max(0, len(p.Updates)-space)]
}

// merged adds the updates of a claim. An update that is in both, because the file was copied by hand, is kept once.
func (p pending) merged(back pending) pending {
	if back.Omitted != p.Omitted || !back.Since.Equal(p.Since) {
		p.Omitted += back.Omitted
		p.Since = latest(p.Since, back.Since)
	}
	known := idsOf(p.Updates)
	all := slices.Clone(p.Updates)
	for _, u := range back.Updates {
		if !known[u.ID()] {
			all = append(all, u)
		}
	}
	p.Updates = ordered(all)
	return p
}

// same reports whether two queues hold the same updates.
func (p pending) same(other pending) bool {
	return p.Omitted == other.Omitted && p.Since.Equal(other.Since) &&
		slices.EqualFunc(p.Updates, other.Updates, func(a, b Update) bool { return a.TS.Equal(b.TS) && a.Message == b.Message })
}

// ordered sorts by ts and makes the ts strictly increasing, which other writers of the array do not guarantee. It
// depends on the list alone, so two readers of one file agree.
func ordered(list []Update) []Update {
	slices.SortStableFunc(list, func(a, b Update) int { return a.TS.Compare(b.TS) })
	for i := 1; i < len(list); i++ {
		if !list[i].TS.After(list[i-1].TS) {
			list[i].TS = list[i-1].TS.Add(time.Microsecond)
		}
	}
	return list
}

func idsOf(list []Update) map[string]bool {
	ids := map[string]bool{}
	for _, u := range list {
		ids[u.ID()] = true
	}
	return ids
}

func latest(a time.Time, more ...time.Time) time.Time {
	for _, t := range more {
		if t.After(a) {
			a = t
		}
	}
	return a
}

// claimed is a claim that is not settled.
type claimed struct {
	Name    string  `json:"name"`
	Run     string  `json:"run,omitempty"`
	Lock    string  `json:"lock,omitempty"` // absolute path
	Pending pending `json:"pending"`
}

// Queue is the state that results from the facts.
type Queue struct {
	Pending pending   `json:"pending"`
	Claims  []claimed `json:"claims,omitempty"` // oldest first
	Gone    []string  `json:"gone,omitempty"`   // the ids of the last updates that were used, dropped or cleared, oldest first
}

// maxGone is how many updates are remembered, so that a former view of the queue is not taken for the work of another program.
const maxGone = 100

type added struct{ Update }

func (added) Fact() string { return "update.added" }

type dropped struct {
	Updates []Update `json:"updates"`
}

func (dropped) Fact() string { return "update.dropped" }

type taken struct {
	Claim string `json:"claim"`
	Run   string `json:"run,omitempty"`
	Lock  string `json:"lock,omitempty"`
}

func (taken) Fact() string { return "update.taken" }

type returned struct {
	Claim string `json:"claim"`
}

func (returned) Fact() string { return "update.returned" }

// used is what became of a claim, or, without one, of updates that are no longer pending.
type used struct {
	Claim string `json:"claim,omitempty"`
	To    string `json:"to,omitempty"` // the run; "": a person
	pending
}

func (used) Fact() string { return "update.used" }

type cleared struct {
	To string `json:"to"` // who cleared them
	pending
}

func (cleared) Fact() string { return "update.cleared" }

type found struct{ pending }

func (found) Fact() string { return "update.found" }

// Facts returns the book of the queue.
func Facts() *ledger.Book[Queue] {
	return ledger.NewBook("update",
		ledger.On("update.added", func(q *Queue, _ time.Time, f added) { q.Pending.Updates = append(q.Pending.Updates, f.Update) }),
		ledger.On("update.dropped", func(q *Queue, _ time.Time, f dropped) {
			gone := idsOf(f.Updates)
			q.Pending.Updates = slices.DeleteFunc(q.Pending.Updates, func(u Update) bool { return gone[u.ID()] })
			q.Pending.Omitted += len(f.Updates)
			q.Pending.Since = latest(q.Pending.Since, pending{Updates: f.Updates}.newest())
			q.forget(pending{Updates: f.Updates})
		}),
		ledger.On("update.taken", func(q *Queue, _ time.Time, f taken) {
			q.Claims = append(q.Claims, claimed{f.Claim, f.Run, f.Lock, q.Pending})
			q.Pending = pending{}
		}),
		ledger.On("update.returned", func(q *Queue, _ time.Time, f returned) { q.Pending = q.Pending.merged(q.settle(f.Claim)) }),
		ledger.On("update.used", func(q *Queue, _ time.Time, f used) {
			q.settle(f.Claim)
			q.forget(f.pending)
		}),
		ledger.On("update.cleared", func(q *Queue, _ time.Time, f cleared) {
			q.Pending = pending{}
			q.forget(f.pending)
		}),
		ledger.On("update.found", func(q *Queue, _ time.Time, f found) { q.Pending = f.pending }),
	)
}

// settle removes a claim and returns its updates.
func (q *Queue) settle(name string) (p pending) {
	q.Claims = slices.DeleteFunc(q.Claims, func(c claimed) bool {
		if c.Name == name {
			p = c.Pending
		}
		return c.Name == name
	})
	return p
}

// forget remembers the ids of updates that are gone.
func (q *Queue) forget(p pending) {
	for _, u := range p.list(time.UTC) {
		q.Gone = append(q.Gone, u.ID())
	}
	q.Gone = q.Gone[max(0, len(q.Gone)-maxGone):]
}
