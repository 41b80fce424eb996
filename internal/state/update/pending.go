package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
)

// pending is the content of the queue.
type pending struct {
	omitted int       // number of updates that the sentinel counts; 0: there is no sentinel
	since   time.Time // ts of the sentinel: that of the newest update it counts
	real    []Update  // ts strictly increasing
}

func (p pending) empty() bool { return p.omitted == 0 && len(p.real) == 0 }

// list returns the queue as readers see it.
func (p pending) list() []Update {
	if p.omitted == 0 {
		return p.real
	}
	return append([]Update{{p.since, sentinel(p.omitted)}}, p.real...)
}

// newest returns the latest ts, zero if the queue is empty.
func (p pending) newest() time.Time {
	newest := p.since
	for _, u := range p.real {
		newest = latest(newest, u.TS)
	}
	return newest
}

// limit applies the cap: the oldest updates are dropped and counted in the sentinel.
func (p *pending) limit() (dropped []Update) {
	space := maxEntries
	if p.omitted > 0 || len(p.real) > maxEntries {
		space = maxEntries - 1
	}
	n := max(0, len(p.real)-space)
	dropped, p.real = p.real[:n], p.real[n:]
	if n > 0 {
		p.omitted += n
		p.since = latest(p.since, dropped[n-1].TS)
	}
	return dropped
}

// merged merges the updates of a claim into the queue. An update that is in both, because files were copied by hand, is
// kept once.
func (p pending) merged(back pending) pending {
	if back.omitted != p.omitted || !back.since.Equal(p.since) {
		p.omitted += back.omitted
		p.since = latest(p.since, back.since)
	}
	stands := make(map[key]bool)
	for _, u := range p.real {
		stands[keyOf(u)] = true
	}
	all := slices.Clone(p.real)
	for _, u := range back.real {
		if !stands[keyOf(u)] {
			all = append(all, u)
		}
	}
	p.real = ordered(all)
	return p
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

// key identifies an update.
type key struct {
	micros  int64
	message string
}

func keyOf(u Update) key { return key{u.TS.UnixMicro(), u.Message} }

func latest(a time.Time, more ...time.Time) time.Time {
	for _, t := range more {
		if t.After(a) {
			a = t
		}
	}
	return a
}

// write replaces the array, which must not be empty.
func (o *opened) write(p pending) error {
	return store.WriteJSON(o.Home.PendingUpdates(), entriesOf(p), store.Synced)
}

func (b Box) pendingOf(entries []entry) pending {
	var p pending
	for i, e := range entries {
		u := Update{e.at(b.Zone), e.Message}
		if n, ok := sentinelCount(u.Message); ok && i == 0 {
			p.omitted, p.since = n, u.TS
			continue
		}
		p.real = append(p.real, u)
	}
	p.real = ordered(p.real)
	return p
}

func entriesOf(p pending) []entry {
	entries := []entry{}
	for _, u := range p.list() {
		entries = append(entries, entry{stamp(u.TS), u.Message})
	}
	return entries
}

// entry is an update on disk.
type entry struct {
	TS      string `json:"ts"` // see stamp; without an offset the time is in the configured zone
	Message string `json:"message"`
}

// stamp writes an instant as Python's isoformat does, with six digits and a numeric offset: older readers accept nothing else.
func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000-07:00") }

// UnmarshalJSON rejects an entry without ts or message: it has another format, and reading it as empty would lose it.
func (e *entry) UnmarshalJSON(data []byte) error {
	var raw struct{ TS, Message *string }
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw.TS == nil || raw.Message == nil {
		return errors.New("an update without ts or message")
	}
	if _, _, ok := timeparse.ISO(*raw.TS); !ok {
		return fmt.Errorf("ts %q is not ISO 8601", *raw.TS)
	}
	*e = entry{*raw.TS, *raw.Message}
	return nil
}

// at returns the instant in a zone, to the microsecond.
func (e entry) at(zone *time.Location) time.Time {
	t, floating, _ := timeparse.ISO(e.TS)
	if floating {
		t = timeparse.Shown(t, zone)
	}
	return t.In(zone).Truncate(time.Microsecond)
}
