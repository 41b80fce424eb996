package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Isolated is the session of one background run, without any history.
type Isolated struct{}

// Traits returns those of a background run.
func (Isolated) Traits() Traits { return Traits{Mode: "isolated"} }

// Key returns "": no other run uses the session.
func (Isolated) Key() string { return "" }

// Open begins a new session.
func (Isolated) Open(context.Context) (History, error) { return History{}, nil }

// Save does nothing: the record of the run has the id.
func (Isolated) Save(context.Context, string) error { return nil }

// Updates shows none.
func (Isolated) Updates() UpdatePolicy { return UpdatePolicy{} }

// Event returns that of an isolated session.
func (Isolated) Event() session.Kind { return session.IsolatedBg }
