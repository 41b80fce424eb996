package outbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Entry is a message in the outbox and what became of it so far.
type Entry struct {
	Message
	Attempts  int       `json:"attempts"`
	LastError string    `json:"last_error,omitempty"` // one line
	LastTry   time.Time `json:"last_attempt,omitzero"`
	Next      time.Time `json:"next_attempt,omitzero"` // the first instant at which Flush tries again; zero when stuck
	Stuck     bool      `json:"stuck"`                 // given up; it stays for the owner to see

	done   bool  // sent or refused, but the file could not be removed
	broken error // it could not be read; or errNoMessage, errEmpty
}

// failure is a line of an entry after the first. One without an error says that the message is done with.
type failure struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
}

// Bounds of the schedule of attempts, see plan.
const (
	minWait    = time.Minute // tick flushes once a minute
	maxWait    = time.Hour
	stuckAfter = 7 * 24 * time.Hour
)

var (
	// errNoMessage is a file in the outbox whose first line is not the message that its name promises.
	errNoMessage = errors.New("not a message")
	// errEmpty is a file that claim is about to remove, see there.
	errEmpty = errors.New("empty")
)

// plan says when the next attempt is due. One that was never made is due at once. After that the wait is as long as the
// message was old at the last attempt, so that it doubles: 1, 1, 2, 4, 8, 16, 32 minutes, then every hour. A message that
// failed when it was seven days old, and still is that old, is stuck. Both conditions count, so that neither a machine
// that slept for a week nor a clock that was wrong at an attempt gives up too soon; a last attempt that lies in the future
// is one of a clock set back since, and the next is due at once.
func (e *Entry) plan(now time.Time) {
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

// needsWork reports whether Flush has anything to do here.
func (e *Entry) needsWork(now time.Time) bool {
	return e.broken != nil || e.done || !e.Stuck && !now.Before(e.Next)
}

// entries reads the outbox, oldest message first. Files of other names are not ours to judge.
func (p Post) entries() ([]Entry, error) {
	names, err := p.list()
	var entries []Entry
	for _, name := range names {
		id, ok := strings.CutSuffix(name, entryExt)
		if !ok || !isMessageID(id) {
			continue
		}
		if e := p.load(id); !errors.Is(e.broken, fs.ErrNotExist) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return entries, err
}

// load reads one entry. It needs no lock, because lines are only ever added. One that has gone is broken by
// fs.ErrNotExist.
func (p Post) load(id string) Entry {
	var e Entry
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

func broken(id string, err error) Entry { return Entry{Message: Message{ID: id}, broken: err} }

// whyNothing says why an entry has no lines.
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

func (e *Entry) add(raw json.RawMessage) {
	var f failure
	if json.Unmarshal(raw, &f) != nil || f.At.IsZero() {
		return
	}
	e.Attempts++
	e.LastTry, e.LastError, e.done = f.At, f.Error, f.Error == ""
}

// note records a failed attempt, or, with no reason, that the message is done with. The caller holds the entry. The owner
// may have deleted it meanwhile: then it stays deleted.
func (p Post) note(id, reason string) error {
	if _, err := os.Lstat(p.path(id)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return store.AppendJSON(p.path(id), failure{At: p.Disk.Now(), Error: reason}, store.Synced)
}

// setAside moves away an entry that is no message; one that merely could not be read now stays. The caller holds it.
func (p Post) setAside(e Entry) error {
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
