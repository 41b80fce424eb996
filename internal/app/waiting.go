package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
)

// Held counts the messages that quiet hours hold.
type Held struct {
	Count  int       `json:"count"`
	Until  time.Time `json:"until,omitzero"` // the end of the quiet hours, or of the message that waits longest
	Others int       `json:"-"`              // messages in the outbox that nothing holds
}

// Why returns until when a message is held.
func (q Held) Why() string { return fmt.Sprintf("held until %s (quiet)", q.Until.Format("15:04")) }

// String counts the messages and says until when they are held.
func (q Held) String() string { return fmt.Sprintf("%d %s", q.Count, q.Why()) }

// Events are the events of one webhook that wait for their runs.
type Events struct {
	Hook  string    `json:"hook"`           // its id
	Name  string    `json:"name"`           // of its file; the id if Gone
	Gone  bool      `json:"gone,omitempty"` // no valid file of a webhook has the id
	Since time.Time `json:"since"`          // in the configured zone
	Count int       `json:"count"`
}

// Events returns what waits in the inbox, by webhook. The list is not nil.
func (h Home) Events() ([]Events, error) {
	list := []Events{}
	hooks, err := h.Inbox.Hooks()
	if len(hooks) == 0 || err != nil {
		return list, err
	}
	files, err := h.Jobs.Load()
	for _, hook := range hooks {
		first, n, firstErr := h.Inbox.First(hook)
		if firstErr == nil {
			waiting := Events{Hook: hook, Name: hook, Gone: true, Since: first.Arrived.In(h.Config.Zone), Count: n}
			if j, known := files.Only(job.Webhook).ByID(hook); known {
				waiting.Name, waiting.Gone = j.Name(), false
			}
			list = append(list, waiting)
		} else if !errors.Is(firstErr, inbox.ErrGone) {
			err = errors.Join(err, firstErr)
		}
	}
	return list, err
}

// Held counts the messages that quiet hours hold: in the outbox, and notices that are not there yet. Until is the zero time if there are
// none.
func (h Home) Held() (held Held, err error) {
	now := h.Disk.Now().In(h.Config.Zone)
	hold := func(until time.Time) {
		held.Count++
		if until = until.In(h.Config.Zone); until.After(held.Until) {
			held.Until = until
		}
	}
	waiting, err := h.Post().Pending()
	for _, m := range waiting {
		if m.NotBefore.After(now) {
			hold(m.NotBefore)
		} else {
			held.Others++
		}
	}
	if !h.Config.Quiet.Contains(now) {
		return held, err
	}
	page, noticeErr := h.Notices.Read()
	for _, m := range page.Unsent {
		if !m.Critical {
			hold(h.Config.Quiet.End(now))
		}
	}
	return held, errors.Join(err, noticeErr)
}
