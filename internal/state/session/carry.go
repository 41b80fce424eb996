package session

import (
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Carry records that a message in the session of a conversation repeats the last turns of a session of another engine. It is kept until the
// agent has begun to answer that message, because an engine may drop a message without an answer.
type Carry struct {
	From string `json:"from"`         // the session of the other engine
	To   string `json:"to,omitempty"` // the session that gets the turns; "" until its engine has named it
	Run  string `json:"run"`          // the run whose message repeats the turns
}

// Carry returns the record of the conversation of a key; the zero Carry if there is none, or none that can be read.
func (b Book) Carry(key string) (Carry, error) {
	c, invalid, err := store.PeekJSON[Carry](b.Home.Carry(key))
	if invalid != nil {
		return Carry{}, nil //nolint:nilerr // a turn does not need the record
	}
	return c, err
}

// SetCarry writes the record and waits for the disk. The caller holds the conversation's lock.
func (b Book) SetCarry(key string, c Carry) error {
	return store.WriteJSON(b.Home.Carry(key), c, store.Synced)
}

// DropCarry removes the record. It succeeds if there is none. The caller holds the conversation's lock.
func (b Book) DropCarry(key string) error { return store.Remove(b.Home.Carry(key)) }

// Before returns the sessions that a session of the main conversation or of a routine came from, the nearest first: those that it was
// compacted from, carried over from, or replaced.
func (b Book) Before(id string) (line []string, err error) {
	parents := map[string][]string{} // the newest first: a conversation may return to a session
	for e, err := range b.History(nil) {
		if err != nil {
			return nil, err
		}
		if e.continues() {
			parents[e.SessionID] = slices.Insert(parents[e.SessionID], 0, e.ParentSessionID)
		}
	}
	seen := map[string]bool{"": true, id: true} // a new session has no parent
	for at := 0; at <= len(line); at++ {
		for _, parent := range parents[id] {
			if !seen[parent] {
				seen[parent], line = true, append(line, parent)
			}
		}
		if at < len(line) {
			id = line[at]
		}
	}
	return line, nil
}

// Left returns when the main conversation or a routine last left a session for another one; the zero time if it never did.
func (b Book) Left(id string) (at time.Time, err error) {
	for e, err := range b.History(nil) {
		if err != nil {
			return time.Time{}, err
		}
		if e.continues() && e.ParentSessionID == id {
			at = e.Timestamp
		}
	}
	return at, nil
}

// continues reports whether the main conversation or a routine continued in the event's session.
func (e Event) continues() bool {
	return e.Event == Created || e.Event == Compacted || e.Event == Swapped || e.Event == PersistentBg
}
