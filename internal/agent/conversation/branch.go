package conversation

import (
	"context"

	"github.com/ollim/ollim/internal/state/session"
)

// Branch is a background run's own branch of the main session. Main goes on without it.
type Branch struct {
	Sessions session.Book
	Busy     func() bool // reports whether main is in a turn
}

// Traits of a branch are those of the background, with main's tools.
func (Branch) Traits() Traits { return Traits{Mode: "forked", Shared: true} }

// Key is "": no other run knows the branch.
func (Branch) Key() string { return "" }

// Open branches the main session. In main's first turn its engine has no session to branch yet.
func (b Branch) Open(context.Context) (h History, err error) {
	if h.Parent, err = b.Sessions.Main(); b.Busy() {
		h.Missing = StartNew
	}
	return h, err
}

// Save keeps nothing: the record of the run has the id.
func (Branch) Save(context.Context, string) error { return nil }

// Updates stay for main.
func (Branch) Updates() UpdatePolicy { return UpdatePolicy{Show: Peek} }

// Event is that of a background branch.
func (Branch) Event() session.Kind { return session.BgFork }
