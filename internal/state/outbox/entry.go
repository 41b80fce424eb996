package outbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// entry is a message in the outbox with its history.
type entry struct {
	Message
	Attempts  int       `json:"attempts"`
	LastError string    `json:"last_error,omitempty"` // one line
	LastTry   time.Time `json:"last_attempt,omitzero"`
	Next      time.Time `json:"next_attempt,omitzero"` // the first instant at which Flush tries again; zero when stuck
	Stuck     bool      `json:"stuck"`                 // given up; it stays in the outbox for the owner to see

	done   bool            // sent or refused, but the file could not be removed
	trips  map[string]trip // by carrier
	broken error           // the read error, errNoMessage or errEmpty
}

// trip is what a carrier has done with a message.
type trip struct {
	parts []string // the ids of the parts that it delivered
	fate  Fate     // "" while something remains

	// Of the present attempt, which other carriers and processes continue.
	failed string    // why it failed; "": it did not
	handed time.Time // when it was left to another process; zero: it was not
}

// line is a line of an entry after the first: what a carrier did, or, without a carrier, a failed attempt. A line with neither marks the
// message as done.
type line struct {
	At      time.Time `json:"at"`
	Error   string    `json:"error,omitempty"`
	Carrier string    `json:"carrier,omitempty"`
	Part    string    `json:"part,omitempty"` // delivered
	Fate    Fate      `json:"fate,omitempty"`
	Handed  bool      `json:"handed,omitempty"` // left to the process that has the carrier
}

// Bounds of the retry schedule, see plan.
const (
	minWait    = time.Minute // tick flushes once a minute
	maxWait    = time.Hour
	stuckAfter = 7 * 24 * time.Hour
)

var (
	// errNoMessage is the error of a file in the outbox whose first line is not the message with the id in its name.
	errNoMessage = errors.New("not a message")
	// errEmpty is the error of an empty file, which claim removes.
	errEmpty = errors.New("empty")
)

// plan computes when the next attempt is due. The first is due at once. After that the wait equals the age of the
// message at the last attempt, so it doubles: 1, 1, 2, 4, 8, 16, 32 minutes, then every hour. A message that failed
// when it was seven days old, and still is that old, is stuck. Both conditions count, so that neither a machine that
// slept for a week nor a clock that was wrong at an attempt gives up too soon. A last attempt in the future means that
// the clock was set back since; the next attempt is due at once.
func (e *entry) plan(now time.Time) {
	if e.held(now) {
		e.Next = e.NotBefore
		return
	}
	tried := e.LastTry.Sub(e.Created)
	switch {
	case e.Attempts == 0:
		e.Next = e.Created
	case tried >= stuckAfter && now.Sub(e.Created) >= stuckAfter:
		e.Stuck = true
	default:
		e.Next = e.LastTry.Add(min(max(tried, minWait), maxWait))
	}
	if last := e.LastTry; last.After(now) || e.Attempts == 0 && e.Next.After(now) {
		e.Next = now
	}
}

// held reports whether the message is not to be sent yet. A time more than a day ahead does not count: the clock was set back since.
func (e *entry) held(now time.Time) bool {
	return e.NotBefore.After(now) && e.NotBefore.Sub(now) <= 24*time.Hour
}

// needsWork reports whether Flush has to process this entry.
func (e *entry) needsWork(now time.Time) bool {
	return e.broken != nil || e.done || !e.Stuck && !now.Before(e.Next)
}

// entries reads the outbox, oldest message first. Files with other names are ignored.
func (p Post) entries() ([]entry, error) {
	ids, err := p.ids("", entryExt)
	var entries []entry
	for _, id := range ids {
		if e := p.load(id); !errors.Is(e.broken, fs.ErrNotExist) {
			entries = append(entries, e)
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return compare(a.Message, b.Message) })
	return entries, err
}

func compare(a, b Message) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) }

// load reads one entry. It needs no lock, because lines are only ever appended. An entry that is gone has
// fs.ErrNotExist as broken.
func (p Post) load(id string) entry {
	var e entry
	lines := 0
	for raw, err := range store.Lines[json.RawMessage](p.path(id), nil) {
		lines++
		switch {
		case err != nil:
			return broken(id, err)
		case lines > 1:
			e.add(raw)
		case json.Unmarshal(raw, &e.Message) != nil || e.ID != id || e.Created.IsZero():
			return broken(id, errNoMessage)
		}
	}
	if lines == 0 {
		return broken(id, p.whyNothing(id))
	}
	e.plan(p.Disk.Now())
	return e
}

func broken(id string, err error) entry { return entry{Message: Message{ID: id}, broken: err} }

// whyNothing returns the reason why an entry has no lines.
func (p Post) whyNothing(id string) error {
	info, err := os.Lstat(p.path(id))
	switch {
	case err != nil:
		return err
	case info.Size() == 0:
		return errEmpty
	}
	return errNoMessage
}

func (e *entry) add(raw json.RawMessage) {
	var l line
	if json.Unmarshal(raw, &l) != nil || l.At.IsZero() {
		return
	}
	if l.Carrier != "" {
		e.progress(l)
		return
	}
	for name, t := range e.trips { // the attempt is over
		t.failed, t.handed = "", time.Time{}
		e.trips[name] = t
	}
	e.Attempts++
	e.LastTry, e.LastError, e.done = l.At, l.Error, l.Error == ""
}

// progress adds what a carrier did.
func (e *entry) progress(l line) {
	if e.trips == nil {
		e.trips = map[string]trip{}
	}
	t := e.trips[l.Carrier]
	if l.Part != "" {
		t.parts = append(t.parts, l.Part)
	}
	t.fate, t.failed = cmp.Or(l.Fate, t.fate), l.Error
	if l.Handed {
		t.handed = l.At
	}
	e.trips[l.Carrier] = t
}

// note appends a line. The caller holds the entry. An entry that the owner has deleted meanwhile stays deleted.
func (p Post) note(id string, l line) error {
	if _, err := os.Lstat(p.path(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l.At = p.Disk.Now()
	return store.AppendJSON(p.path(id), store.Synced, l)
}

// setAside moves away an entry that is not a message. An entry that cannot be read now stays. The caller holds the entry.
func (p Post) setAside(e entry) error {
	if !errors.Is(e.broken, errNoMessage) {
		return e.broken
	}
	aside, err := store.SetAside(p.path(e.ID), p.Disk.Now())
	if err != nil {
		return err
	}
	p.Disk.Warn(fmt.Sprintf("%s: %v: kept as %s", p.path(e.ID), e.broken, aside))
	return nil
}
