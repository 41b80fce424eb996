package conversation

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/state/session"
)

// Routine is the session of a persistent routine, which goes on at each fire.
type Routine struct {
	Sessions session.Book
	ID       string                // of the routine
	Shown    time.Time             // updates up to here were shown to an earlier run
	Own      func(run string) bool // reports whether a run was one of the routine: its agent knows what it reported
}

// RoutineKey is the key of a persistent routine's conversation.
func RoutineKey(routine string) string { return "routine-" + routine }

// Traits of a routine's session are those of the background.
func (Routine) Traits() Traits { return Traits{Mode: "persistent", Persistent: true} }

// Key names the routine.
func (r Routine) Key() string { return RoutineKey(r.ID) }

// Open continues the routine's session.
func (r Routine) Open(context.Context) (h History, err error) {
	h.Session, err = r.Sessions.Routine(r.ID)
	return h, err
}

// Save makes id the routine's session.
func (r Routine) Save(_ context.Context, id string) error { return r.Sessions.SetRoutine(r.ID, id) }

// Updates stay for main; each is shown once, and the routine's own are left out.
func (r Routine) Updates() UpdatePolicy {
	return UpdatePolicy{Show: Peek, Since: r.Shown, Skip: r.Own}
}

// Event is that of a session in the background.
func (Routine) Event() session.Kind { return session.PersistentBg }
