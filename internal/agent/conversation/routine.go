package conversation

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/state/session"
)

// Routine is the session of a persistent routine, which each fire continues.
type Routine struct {
	Sessions session.Book
	ID       string                // of the routine
	Shown    time.Time             // updates up to here were shown to an earlier run
	Own      func(run string) bool // reports whether a run was one of the routine, whose agent knows what it reported
}

// Traits returns those of a background run with a session that is kept.
func (Routine) Traits() Traits { return Traits{Mode: "persistent", Persistent: true} }

// Key returns the key of the routine.
func (r Routine) Key() string { return "routine-" + r.ID }

// Open continues the routine's session.
func (r Routine) Open(context.Context) (h History, err error) {
	h.Name = "routine:" + r.ID
	h.Session, err = r.Sessions.Routine(r.ID)
	return h, err
}

// Save makes id the routine's session.
func (r Routine) Save(_ context.Context, id string) error { return r.Sessions.SetRoutine(r.ID, id) }

// Updates shows each update once, except the routine's own, and leaves them for main.
func (r Routine) Updates() UpdatePolicy {
	return UpdatePolicy{Show: Peek, Since: r.Shown, Skip: r.Own}
}

// Event returns that of a persistent session.
func (Routine) Event() session.Kind { return session.PersistentBg }
