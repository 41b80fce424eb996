package session

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Message links a message to the session that sent it, for a reply.
type Message struct {
	MessageID       string    `json:"message_id"`
	Outside         string    `json:"outside_id,omitempty"` // that a reply quotes, if that is another
	ForkSessionID   string    `json:"fork_session_id"`
	ParentSessionID string    `json:"parent_session_id,omitempty"`
	TS              time.Time `json:"ts"`
}

// Run returns the id of the run that sent the message, the prefix of its MessageID.
func (m Message) Run() string { return m.MessageID[:max(0, strings.LastIndexByte(m.MessageID, '.'))] }

// ReplyLimit is how long a reply to a message reaches its session.
const ReplyLimit = 7 * 24 * time.Hour

// Sent records a message, and drops those that are too old for a reply.
func (b Book) Sent(ctx context.Context, m Message) error {
	m.TS = b.Disk.Now().In(b.Zone)
	return b.editMessages(ctx, func(all *[]Message) {
		*all = slices.DeleteFunc(*all, func(old Message) bool { return m.TS.Sub(old.TS) > ReplyLimit })
		*all = append(*all, m)
	})
}

// Received records the id that a reply to a message will quote.
func (b Book) Received(ctx context.Context, messageID, outside string) error {
	return b.editMessages(ctx, func(all *[]Message) {
		for i, m := range *all {
			if m.MessageID == messageID {
				(*all)[i].Outside = outside
			}
		}
	})
}

func (b Book) editMessages(ctx context.Context, edit func(*[]Message)) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("fork_messages"), b.Home.ForkMessages(), func(all *[]Message) error {
		edit(all)
		return nil
	})
}

// ByMessage returns the latest message with an id, its own or the one that a reply quotes. found is false if it cannot be answered
// any more; the message is the zero one if none is known.
func (b Book) ByMessage(ctx context.Context, id string) (m Message, found bool, err error) {
	held, err := b.Disk.Lock(ctx, b.Home.Lock("fork_messages"))
	if err != nil {
		return m, false, err
	}
	defer held.Release()
	all, err := store.ReadJSON[[]Message](b.Disk, b.Home.ForkMessages())
	if err != nil {
		return m, false, err
	}
	for _, m := range slices.Backward(all) {
		if m.MessageID == id || m.Outside == id {
			return m, b.Disk.Now().Sub(m.TS) <= ReplyLimit, nil
		}
	}
	return Message{}, false, nil
}
