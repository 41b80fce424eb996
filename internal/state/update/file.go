package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/ledger"
)

// with returns the queue after the content of the file is taken over, and the facts for that. Without facts the file is a present or former
// view of the queue, which holds only known updates. An empty file was emptied by another program, because show never leaves the file empty
// while there are updates.
func (q *Queue) with(file pending) (now pending, facts []ledger.Fact) {
	p := q.Pending
	if file.same(p) {
		return p, nil
	}
	known := idsOf(p.list(time.UTC))
	for _, c := range q.Claims {
		for _, u := range c.Pending.list(time.UTC) {
			known[u.ID()] = true
		}
	}
	for _, id := range q.Gone {
		known[id] = true
	}
	in := idsOf(file.Updates)
	fresh := false
	for _, u := range file.Updates {
		fresh = fresh || !known[u.ID()]
	}
	if !fresh && (len(file.Updates) > 0 || file.Omitted > 0 && known[file.sentinel().ID()]) {
		return p, nil
	}
	return p.written(file, in, known)
}

// written returns the queue after another program has written the file: the program has added what is not known, and has dropped or used
// what is not in the file. Updates that are newer than all in the file it has not seen.
func (p pending) written(file pending, in, known map[string]bool) (now pending, facts []ledger.Fact) {
	var last time.Time
	for _, u := range p.Updates {
		if in[u.ID()] {
			last = u.TS
		}
	}
	now = pending{Omitted: p.Omitted, Since: p.Since}
	var gone []Update
	for _, u := range p.Updates {
		if in[u.ID()] || !last.IsZero() && u.TS.After(last) {
			now.Updates = append(now.Updates, u)
		} else {
			gone = append(gone, u)
		}
	}
	former, waits := false, idsOf(p.Updates)
	for _, u := range file.Updates {
		if !known[u.ID()] {
			now.Updates = append(now.Updates, u)
		}
		former = former || known[u.ID()] && !waits[u.ID()]
	}
	now.Updates = ordered(now.Updates)
	switch {
	case !last.IsZero() && len(gone) > 0:
		facts = append(facts, dropped{gone})
	case last.IsZero() && !p.empty():
		facts = append(facts, used{"", otherProgram, p})
		now.Omitted, now.Since = 0, time.Time{}
	}
	switch { // the sentinel of a view with claimed or gone updates counts those as well
	case former, file.Omitted > 0 && known[file.sentinel().ID()]:
	case last.IsZero() || file.Omitted > p.Omitted:
		now.Omitted, now.Since = file.Omitted, file.Since
	}
	return now, append(facts, found{now})
}

// otherProgram stands for the run that has used what another program took out of the file.
const otherProgram = "another program"

// adopt adds what another program has written into the file to the queue.
func (o *opened) adopt() error {
	_, facts := o.queue.with(o.file)
	if len(facts) == 0 {
		return nil
	}
	return o.add(facts...)
}

// show makes the file hold the queue. An empty file is replaced, durably, before the facts are written, other files after that. So an empty
// file while there are updates was emptied by another program. A process that dies in between leaves a file that counts as a former view,
// or whose new updates are added to the queue.
func (o *opened) show() error {
	now, path := o.queue.Pending, o.Home.PendingUpdates()
	switch {
	case now.same(o.file):
	case o.file.empty():
		if err := store.WriteJSON(path, o.entries(now), store.Synced); err != nil {
			return err
		}
		o.tx.After(func(err error) {
			if err != nil {
				_ = os.Remove(path) // if it stays, its updates are added to the queue
			}
		})
	default:
		o.tx.After(func(err error) {
			if err == nil {
				o.replace(path, o.queue.Pending)
			}
		})
	}
	return nil
}

// replace makes the file hold a queue whose facts are written. If that fails, the next change does it.
func (o *opened) replace(path string, now pending) {
	var err error
	if now.empty() {
		err = os.Remove(path)
	} else {
		err = store.WriteJSON(path, o.entries(now), store.Buffered)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.Disk.Warn(fmt.Sprintf("%s does not show the pending updates: %s", path, store.Cause(err)))
	}
}

func (b Box) pendingOf(entries []entry) pending {
	var p pending
	for i, e := range entries {
		u := Update{TS: e.at(b.Zone), Message: e.Message}
		if n, ok := sentinelCount(u.Message); ok && i == 0 {
			p.Omitted, p.Since = n, u.TS
			continue
		}
		p.Updates = append(p.Updates, u)
	}
	p.Updates = ordered(p.Updates)
	return p
}

func (b Box) entries(p pending) []entry {
	entries := []entry{}
	for _, u := range p.list(b.Zone) {
		entries = append(entries, entry{stamp(u.TS), u.Message})
	}
	return entries
}

// entry is an update in the file.
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

// at returns the instant in UTC, to the microsecond.
func (e entry) at(zone *time.Location) time.Time {
	t, floating, _ := timeparse.ISO(e.TS)
	if floating {
		t = timeparse.Shown(t, zone)
	}
	return t.UTC().Truncate(time.Microsecond)
}
