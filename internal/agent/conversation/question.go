package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Question is the session of questions at a shell. It is kept as a transcript only.
type Question struct {
	Session string // to continue; "" begins one
	Branch  bool   // branch Session: it is not a question's, or must not change
	Follow  bool   // Session is continued where a compaction took it
	Discard bool   // no transcript is kept
}

// Traits returns those of a run outside the main conversation.
func (Question) Traits() Traits { return Traits{Mode: "ask"} }

// Key returns "": the transcript has a lock of its own.
func (Question) Key() string { return "" }

// Open continues or branches the session. A session that no longer exists is an error, because the owner named it.
func (q Question) Open(context.Context) (History, error) {
	h := History{Session: q.Session, Follow: q.Follow, Discard: q.Discard, Missing: fail}
	if q.Branch {
		h.Session, h.Parent = "", q.Session
	}
	return h, nil
}

// Save does nothing: the transcript has the id.
func (Question) Save(context.Context, string) error { return nil }

// Updates shows none.
func (Question) Updates() UpdatePolicy { return UpdatePolicy{} }

// Event returns "": the session is not in the history.
func (Question) Event() session.Kind { return "" }
