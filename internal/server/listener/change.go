package listener

import (
	"context"
	"slices"
	"sync"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// heard are the messages that wait in lanes, as they are now, by their ids; nil is one that was deleted.
type heard struct {
	mu    sync.Mutex
	byID  map[string]*messenger.Message
	order []string // the ids of byID as they first came
}

func (h *heard) put(m *messenger.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = map[string]*messenger.Message{}
	}
	if _, waits := h.byID[m.ID]; !waits {
		h.order = append(h.order, m.ID)
	}
	h.byID[m.ID] = m
}

// waiting returns the ids of the messages that wait in the lane of a channel, in the order in which they first came.
func (h *heard) waiting(channel string) (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range h.order {
		if m := h.byID[id]; m != nil && m.Channel == channel {
			ids = append(ids, id)
		}
	}
	return ids
}

// compare compares messages that waited before the history of their channel was read with it: one that is not there, although a later one
// is, was deleted. Nothing else tells that when the messenger was not connected.
func (h *heard) compare(waited []string, history map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	later := false
	for _, id := range slices.Backward(waited) {
		later = later || history[id]
		if later && !history[id] && h.byID[id] != nil {
			h.byID[id] = nil
		}
	}
}

// newest returns the newest form of a message whose turn in its lane has come, or that it was deleted.
func (h *heard) newest(m *messenger.Message) (newest *messenger.Message, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest, waited := h.byID[m.ID]
	delete(h.byID, m.ID)
	h.order = slices.DeleteFunc(h.order, func(id string) bool { return id == m.ID })
	if !waited { // it came twice
		return m, false
	}
	return newest, newest == nil
}

// change replaces a message that waits in the lane of a channel by what to returns.
func (h *heard) change(channel, id string, to func(before messenger.Message) *messenger.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.byID[id]; before != nil && before.Channel == channel {
		h.byID[id] = to(*before)
	}
}

// Edited handles the new text and files of a message by its author. If the agent has not begun to answer the message, it gets these;
// otherwise nothing happens. The files of a message in the queue stay. A message that waits in its lane may be in the queue already, from
// the history: both are changed. It returns soon.
func (l *Listener) Edited(ctx context.Context, m *messenger.Message) {
	if m.User == "" || m.Text == "" && len(m.Files) == 0 { // it cannot be read
		return
	}
	edit := func(before messenger.Message) *messenger.Message {
		if before.User == m.User {
			before.Text, before.Files = m.Text, m.Files
		}
		return &before
	}
	l.heard.change(m.Channel, m.ID, edit)
	if !l.ownsNow(m.User) { // only the owner's messages wait in the queue
		return
	}
	l.lanes.do(m.Channel, func() {
		l.warn(l.talks.change(ctx, m.Channel, m.ID, func(_ *conversation, s spoken) error {
			_, err := s.Rewrite(ctx, s.as(m.Text))
			return err
		}))
	})
}

// Deleted handles the end of a message. If the agent has not begun to answer the message, it is not answered;
// otherwise nothing happens. It returns soon.
func (l *Listener) Deleted(ctx context.Context, channel, id string) {
	l.heard.change(channel, id, func(messenger.Message) *messenger.Message { return nil })
	l.lanes.do(channel, func() {
		l.warn(l.talks.change(ctx, channel, id, func(c *conversation, s spoken) error {
			done, err := s.Withdraw(ctx)
			if !done || err != nil {
				return err
			}
			c.gone = append(c.gone, id)
			return l.handled.close(id)
		}))
	})
}

// forgo notes that a message is not answered because it was deleted. It runs in the channel's lane.
func (l *Listener) forgo(ctx context.Context, m *messenger.Message) {
	if ctx.Err() == nil && !l.handled.has(m.Channel, m.ID) {
		l.warn(l.handled.add(m.Channel, m.ID, false))
	}
}

// change calls do with a message of a channel's conversation that waits, or whose turn has perhaps not begun.
func (t *talks) change(ctx context.Context, channel, id string, do func(*conversation, spoken) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byID[channel]
	if c == nil || id == "" || ctx.Err() != nil {
		return nil
	}
	for _, s := range slices.Concat(c.turning, c.waiting) {
		if s.id == id {
			return do(c, s)
		}
	}
	return nil
}

// isGone reports whether a message of a conversation was deleted before its turn began.
func (t *talks) isGone(c *conversation, s spoken) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(c.gone, s.id)
}

// dropGone drops the messages that were deleted while they waited. The caller holds the mutex of the talks.
func (c *conversation) dropGone() {
	c.waiting = slices.DeleteFunc(c.waiting, func(s spoken) bool {
		gone := slices.Contains(c.gone, s.id)
		if gone {
			c.listener.warn(s.Remove())
		}
		return gone
	})
	c.gone = nil
}
