package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Branch is a background run's own branch of the main session.
type Branch struct {
	Sessions session.Book
	Busy     func() bool // reports whether main is in a turn
}

// Traits returns those of a background run, with main's tools.
func (Branch) Traits() Traits { return Traits{Mode: "forked", Shared: true} }

// Key returns "": no other run uses the branch.
func (Branch) Key() string { return "" }

// Open branches the main session. During main's first turn there is no session to branch yet.
func (b Branch) Open(context.Context) (h History, err error) {
	h.Name = MainKey
	if h.Parent, err = b.Sessions.Main(); b.Busy() {
		h.Missing = startNew
	}
	return h, err
}

// Save does nothing: the record of the run has the id.
func (Branch) Save(context.Context, string) error { return nil }

// Updates shows the updates and leaves them for main.
func (Branch) Updates() UpdatePolicy { return UpdatePolicy{Show: Peek} }

// Event returns that of a background branch.
func (Branch) Event() session.Kind { return session.BgFork }
