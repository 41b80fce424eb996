package session

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
)

// Kind is the kind of an event.
type Kind string

// Kinds of events; parent is the session that this one came from.
const (
	Created         Kind = "created"
	Compacted       Kind = "compacted" // parent: the id before the compaction
	Swapped         Kind = "swapped"   // an interactive fork became the main session; parent: the main session before
	Cleared         Kind = "cleared"
	InteractiveFork Kind = "interactive_fork"
	BgFork          Kind = "bg_fork" // parent: the main session
	IsolatedBg      Kind = "isolated_bg"
	PersistentBg    Kind = "persistent_bg" // parent: the id that was lost, if the engine no longer knew it
)

// Event is one line of the history. An empty parent is null in JSON.
type Event struct {
	SessionID       string
	Event           Kind
	Timestamp       time.Time
	ParentSessionID string // "" if there is none
	floating        bool   // Timestamp was written without a zone
}

// line is an event on disk. The time is text, because other software writes it without a zone.
type line struct {
	SessionID       string  `json:"session_id"`
	Event           Kind    `json:"event"`
	Timestamp       string  `json:"timestamp"`
	ParentSessionID *string `json:"parent_session_id"`
}

// MarshalJSON writes the form on disk.
func (e Event) MarshalJSON() ([]byte, error) {
	l := line{SessionID: e.SessionID, Event: e.Event, Timestamp: e.Timestamp.Format(time.RFC3339Nano)}
	if e.ParentSessionID != "" {
		l.ParentSessionID = &e.ParentSessionID
	}
	return json.Marshal(l)
}

// UnmarshalJSON reads the form on disk; a time without a zone is UTC.
func (e *Event) UnmarshalJSON(data []byte) error {
	var l line
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	at, floating, ok := timeparse.ISO(l.Timestamp)
	if l.Event == "" || !ok {
		return errors.New("not a session event")
	}
	*e = Event{l.SessionID, l.Event, at, "", floating}
	if l.ParentSessionID != nil {
		e.ParentSessionID = *l.ParentSessionID
	}
	return nil
}

// Log appends an event to the history and waits for the disk; a zero Timestamp becomes now. The error is a *lock.Failed
// or *store.NotWritten, or wraps lock.ErrBusy if the lock was not free before ctx ended or within ten seconds.
func (b Book) Log(ctx context.Context, e Event) error { return b.log(ctx, e, store.Synced, false) }

// Used is Log for a session that the history has with an event of that kind. It does not wait for the disk: the record of the run also says
// when the session was used.
func (b Book) Used(ctx context.Context, e Event) error { return b.log(ctx, e, store.Buffered, false) }

// log appends an event. If once is set, it does nothing if the session has an event of that kind.
func (b Book) log(ctx context.Context, e Event, d store.Durability, once bool) error {
	if e.Timestamp.IsZero() {
		e.Timestamp = b.Disk.Now().In(b.Zone)
	}
	return b.Disk.Locked(ctx, b.Home.Lock("session_history"), func() error {
		if once {
			for old, err := range b.History(nil) {
				if err != nil || old.Event == e.Event && old.SessionID == e.SessionID {
					return err
				}
			}
		}
		return store.AppendJSON(b.Home.SessionHistory(), d, e)
	})
}

// History reads every event, oldest first. Lines that are torn, malformed or not events are skipped and counted in
// *bad, which may be nil; events of an unknown kind are kept. A time without a zone is read in Zone. Reading stops at
// the first I/O error, which is yielded with the zero Event.
func (b Book) History(bad *int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range store.Lines[Event](b.Home.SessionHistory(), bad) {
			if e.floating {
				e.Timestamp, e.floating = timeparse.Shown(e.Timestamp, b.Zone), false
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Alone returns the sessions of forked and isolated runs and of interactive forks, including those that replaced them by compaction.
func (b Book) Alone() (map[string]bool, error) {
	alone := map[string]bool{}
	for e, err := range b.History(nil) {
		if err != nil {
			return nil, err
		}
		switch e.Event {
		case BgFork, IsolatedBg, InteractiveFork:
			alone[e.SessionID] = true
		case Swapped: // it became the main session
			alone[e.SessionID] = false
		case Compacted:
			alone[e.SessionID] = alone[e.ParentSessionID]
		}
	}
	return alone, nil
}

// Trim removes the events from before an instant, except those of sessions that keep accepts. Lines that cannot be read stay.
func (b Book) Trim(ctx context.Context, before time.Time, keep func(session string) bool) error {
	return b.Disk.Locked(ctx, b.Home.Lock("session_history"), func() error {
		return store.FilterLines(b.Home.SessionHistory(), func(e Event) bool {
			return !e.Timestamp.Before(before) || keep(e.SessionID)
		})
	})
}
