package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Isolated is a session of one background run, without any history.
type Isolated struct{}

// Traits are those of the background.
func (Isolated) Traits() Traits { return Traits{Mode: "isolated"} }

// Key is "": no other run knows the session.
func (Isolated) Key() string { return "" }

// Open begins a new session.
func (Isolated) Open(context.Context) (History, error) { return History{}, nil }

// Save keeps nothing: the record of the run has the id.
func (Isolated) Save(context.Context, string) error { return nil }

// Updates are not shown.
func (Isolated) Updates() UpdatePolicy { return UpdatePolicy{} }

// Event is that of a session on its own.
func (Isolated) Event() session.Kind { return session.IsolatedBg }
