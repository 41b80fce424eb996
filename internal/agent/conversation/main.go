package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Main is the main conversation.
type Main struct {
	Sessions session.Book

	mark session.Mark // of the session as the turn has found or left it
}

// MainKey is the key of the main conversation.
const MainKey = session.MainKey

// Traits returns those of the owner's own conversation.
func (*Main) Traits() Traits { return Traits{Mode: "foreground", Foreground: true, Shared: true} }

// Key returns MainKey.
func (*Main) Key() string { return MainKey }

// Open continues the main session.
func (m *Main) Open(context.Context) (h History, err error) {
	h.Name = MainKey
	h.Session, m.mark, err = m.Sessions.MainAt()
	return h, err
}

// Save makes id the main session, unless the owner has cleared the conversation since the turn began.
func (m *Main) Save(ctx context.Context, id string) (err error) {
	m.mark, err = m.Sessions.FollowMain(context.WithoutCancel(ctx), m.mark, id)
	return err
}

// Updates removes the updates that it shows; no other conversation does.
func (*Main) Updates() UpdatePolicy { return UpdatePolicy{Show: pop} }

// Event returns that of a new session.
func (*Main) Event() session.Kind { return session.Created }
