package session

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Message links a message to the session that sent it, for a reply.
type Message struct {
	MessageID       string    `json:"message_id"`
	Outside         []string  `json:"outside_ids,omitempty"` // ids that a reply quotes, if they differ; one for each part
	ForkSessionID   string    `json:"fork_session_id"`
	ParentSessionID string    `json:"parent_session_id,omitempty"`
	TS              time.Time `json:"ts"`
}

// MessageID returns the id of the n-th message of a run, from 1.
func MessageID(run string, n int) string { return run + "." + strconv.Itoa(n) }

// Run returns the id of the run that sent the message.
func (m Message) Run() string { return m.MessageID[:max(0, strings.LastIndexByte(m.MessageID, '.'))] }

// Number returns which message of its run it is; 0 is none.
func (m Message) Number() int {
	n, _ := strconv.Atoi(m.MessageID[strings.LastIndexByte(m.MessageID, '.')+1:]) // 0 without a number
	return n
}

const (
	// ReplyLimit is how long a reply to a message can reach the message's session.
	ReplyLimit = 7 * 24 * time.Hour
	// messageLimit is how long a message is known: a later reply is told that the session has expired.
	messageLimit = 90 * 24 * time.Hour
)

// Sent records a message, and drops those that are too old.
func (b Book) Sent(ctx context.Context, m Message) error {
	m.TS = b.Disk.Now().In(b.Zone)
	return b.editMessages(ctx, func(all *[]Message) error {
		*all = slices.DeleteFunc(*all, func(old Message) bool { return m.TS.Sub(old.TS) > messageLimit })
		*all = append(*all, m)
		return nil
	})
}

// Received records the ids that a reply to a message, or to a part of it, will quote.
func (b Book) Received(ctx context.Context, messageID string, outside ...string) error {
	if len(outside) == 0 {
		return nil
	}
	return b.editMessages(ctx, func(all *[]Message) error {
		err := store.ErrUnchanged
		for i := range *all {
			m := &(*all)[i]
			for _, id := range outside {
				if m.MessageID == messageID && !slices.Contains(m.Outside, id) {
					m.Outside, err = append(m.Outside, id), nil
				}
			}
		}
		return err
	})
}

func (b Book) editMessages(ctx context.Context, edit func(*[]Message) error) error {
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("fork_messages"), b.Home.State("fork_messages.json"), edit)
}

// ByMessage returns the latest message with an id, its own or the one that a reply quotes. found is false if a reply does
// not reach its session any more; the message is the zero one if none is known.
func (b Book) ByMessage(ctx context.Context, id string) (m Message, found bool, err error) {
	err = b.editMessages(ctx, func(all *[]Message) error {
		for _, sent := range slices.Backward(*all) {
			if sent.MessageID == id || slices.Contains(sent.Outside, id) {
				m, found = sent, b.Disk.Now().Sub(sent.TS) <= ReplyLimit
				break
			}
		}
		return store.ErrUnchanged
	})
	return m, found, err
}
