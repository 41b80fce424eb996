package session

import (
	"context"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Message joins a message that a run has sent to the session that sent it, for whoever answers it.
type Message struct {
	MessageID       string    `json:"message_id"`
	ForkSessionID   string    `json:"fork_session_id"`
	ParentSessionID string    `json:"parent_session_id,omitempty"`
	TS              time.Time `json:"ts"`
}

// ReplyLimit is how long a message can be answered into its session.
const ReplyLimit = 7 * 24 * time.Hour

// Sent notes a message; those that are too old to be answered go.
func (b Book) Sent(ctx context.Context, m Message) error {
	m.TS = b.Disk.Now().In(b.Zone)
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("fork_messages"), b.Home.ForkMessages(), func(all *[]Message) error {
		*all = slices.DeleteFunc(*all, func(old Message) bool { return m.TS.Sub(old.TS) > ReplyLimit })
		*all = append(*all, m)
		return nil
	})
}
