package listener

import (
	"context"
	"slices"
	"sync"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// heard is what the listener has heard and the lanes have not handled yet.
type heard struct {
	mu      sync.Mutex
	byID    map[string]*messenger.Message // the messages that wait in lanes, as they last came; nil is one that the history does not have
	order   []string                      // the ids of byID as they first came
	changes []*change                     // in the order in which they came
}

// change is an edit or a deletion of a message.
type change struct {
	channel, id string
	edit        *messenger.Message // the message with its new text and files; nil: it was deleted
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

// next returns the form in which a message last came whose turn in its lane has come, or that the history does not have it.
func (h *heard) next(m *messenger.Message) (last *messenger.Message, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, waited := h.byID[m.ID]
	delete(h.byID, m.ID)
	h.order = slices.DeleteFunc(h.order, func(id string) bool { return id == m.ID })
	if !waited { // it came twice
		return m, false
	}
	return last, last == nil
}

// note keeps a change until drop.
func (h *heard) note(c *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
}

func (h *heard) drop(c *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = slices.DeleteFunc(h.changes, func(o *change) bool { return o == c })
}

// newest returns a message with the changes of it that are kept; nil if it was deleted.
func (h *heard) newest(m *messenger.Message) *messenger.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := *m
	for _, c := range h.changes {
		switch {
		case c.channel != m.Channel || c.id != m.ID:
		case c.edit == nil:
			return nil
		case c.edit.User == m.User:
			newest.Text, newest.Files = c.edit.Text, c.edit.Files
		}
	}
	return &newest
}

// Edited handles the new text and files of a message by its author. If the agent has not begun to answer the message, it gets these;
// otherwise nothing happens. The files of a message stay once they are downloaded. It returns soon.
func (l *Listener) Edited(ctx context.Context, m *messenger.Message) {
	if m.User == "" || m.Text == "" && len(m.Files) == 0 { // it cannot be read
		return
	}
	l.apply(ctx, &change{m.Channel, m.ID, m})
}

// Deleted handles the end of a message. If the agent has not begun to answer the message, it is not answered;
// otherwise nothing happens. It returns soon.
func (l *Listener) Deleted(ctx context.Context, channel, id string) {
	l.apply(ctx, &change{channel, id, nil})
}

// apply handles a change wherever the message is. A message in the queue is changed at once, beside the lane of its channel. One that the
// lane handles later gets the changes that are kept then, whether its event or the history says it. One that the lane puts into the queue
// meanwhile is changed once the lane has done that; until then the change is kept.
func (l *Listener) apply(ctx context.Context, c *change) {
	l.heard.note(c)
	l.lanes.do(laneOfChanges(c.channel), func() {
		l.warn(l.applyToQueue(ctx, c))
		l.lanes.do(c.channel, func() {
			l.warn(l.applyToQueue(ctx, c))
			l.heard.drop(c)
		})
	})
}

// laneOfChanges returns the name of the lane in which messages of a channel are changed that are in the queue.
func laneOfChanges(channel string) string { return "changes of " + channel }

// applyToQueue applies a change that is kept to a message in the queue.
func (l *Listener) applyToQueue(ctx context.Context, c *change) error {
	if c.edit != nil && !l.ownsNow(c.edit.User) { // only the owner's messages wait in the queue
		return nil
	}
	return l.talks.change(ctx, c.channel, c.id, func(talk *conversation, s spoken) error {
		if c.edit == nil {
			return talk.withdraw(ctx, s)
		}
		newest := l.heard.newest(c.edit) // a later edit may be in the queue already
		if newest == nil {
			return nil
		}
		_, err := s.Rewrite(ctx, s.as(newest.Text))
		return err
	})
}

// forgo notes that a message is not answered because it was deleted. It runs in the channel's lane.
func (l *Listener) forgo(ctx context.Context, m *messenger.Message) {
	if ctx.Err() == nil && !l.handled.has(m.Channel, m.ID) {
		l.warn(l.handled.add(m.Channel, m.ID, false))
	}
}

// withdraw takes a message that was deleted out of the queue, if no turn has begun to answer it. The caller holds the mutex of the talks.
func (c *conversation) withdraw(ctx context.Context, s spoken) error {
	done, err := s.Withdraw(ctx)
	if !done || err != nil {
		return err
	}
	c.gone = append(c.gone, s.id)
	return c.listener.handled.close(s.id)
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
