package conversation

import (
	"context"
	"time"
)

// Resumed is the session of a background run that continues, such as with the answer to a question.
type Resumed struct {
	Conversation // that the session began in

	Session string    // of the run; "" begins one
	Since   time.Time // when the run last saw the pending updates
}

// Open continues the run's session.
func (r Resumed) Open(context.Context) (History, error) { return History{Session: r.Session}, nil }

// Updates shows the updates of the conversation that are newer than Since.
func (r Resumed) Updates() UpdatePolicy {
	policy := r.Conversation.Updates()
	policy.Since = r.Since
	return policy
}
