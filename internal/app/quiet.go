package app

import (
	"errors"
	"fmt"
	"time"
)

// Held counts the messages that quiet hours hold.
type Held struct {
	Count int       `json:"count"`
	Until time.Time `json:"until,omitzero"` // the end of the quiet hours, or of the message that waits longest
}

// Why returns until when a message is held.
func (q Held) Why() string { return fmt.Sprintf("held until %s (quiet)", q.Until.Format("15:04")) }

// String counts the messages and says until when they are held.
func (q Held) String() string { return fmt.Sprintf("%d %s", q.Count, q.Why()) }

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
