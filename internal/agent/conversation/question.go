package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Question is the session of questions at a shell. Its transcript is all that is kept of it.
type Question struct {
	Session string // to go on with; "" begins one
	Branch  bool   // Session is branched: it is not a question's, or it is to stay as it is
	Follow  bool   // Session is continued where a compaction took it
	Discard bool   // no transcript is kept
}

// Traits are those of a run with no part in the main conversation.
func (Question) Traits() Traits { return Traits{Mode: "ask"} }

// Key is "": the transcript has a lock of its own.
func (Question) Key() string { return "" }

// Open continues or branches the session. One that is gone is an error: the owner has named it.
func (q Question) Open(context.Context) (History, error) {
	h := History{Session: q.Session, Follow: q.Follow, Discard: q.Discard, Missing: Fail}
	if q.Branch {
		h.Session, h.Parent = "", q.Session
	}
	return h, nil
}

// Save keeps nothing: the transcript has the id.
func (Question) Save(context.Context, string) error { return nil }

// Updates are not shown.
func (Question) Updates() UpdatePolicy { return UpdatePolicy{} }

// Event keeps the session out of the history.
func (Question) Event() session.Kind { return "" }
