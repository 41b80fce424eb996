package conversation

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/session"
)

// unkept is a part of conversations whose session no store keeps and no other run uses.
type unkept struct{}

func (unkept) Key() string                        { return "" }
func (unkept) Save(context.Context, string) error { return nil }
func (unkept) Updates() UpdatePolicy              { return UpdatePolicy{} }
func (unkept) Event() session.Kind                { return "" }

// Main is the main conversation.
type Main struct {
	Sessions session.Book

	mark string // mark of the session as the turn has found or left it
}

// Traits returns those of the owner's own conversation.
func (*Main) Traits() Traits { return Traits{Mode: "foreground", Foreground: true, Shared: true} }

// Key returns the key of the main session.
func (*Main) Key() string { return session.MainKey }

// Open continues the main session.
func (m *Main) Open(context.Context) (h History, err error) {
	h.Name = session.MainKey
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

// Branch is a background run's own branch of the main session.
type Branch struct {
	unkept

	Sessions session.Book
	Busy     func() bool // reports whether main is in a turn
}

// Traits returns those of a background run, with main's tools.
func (Branch) Traits() Traits { return Traits{Mode: "forked", Shared: true} }

// Open branches the main session. During main's first turn there is no session to branch yet.
func (b Branch) Open(context.Context) (h History, err error) {
	h.Name = session.MainKey
	if h.Parent, err = b.Sessions.Main(); b.Busy() {
		h.Missing = startNew
	}
	return h, err
}

// Updates shows the updates and leaves them for main.
func (Branch) Updates() UpdatePolicy { return UpdatePolicy{Show: Peek} }

// Event returns that of a background branch.
func (Branch) Event() session.Kind { return session.BgFork }

// Isolated is the session of one background run, without any history.
type Isolated struct{ unkept }

// Traits returns those of a background run.
func (Isolated) Traits() Traits { return Traits{Mode: "isolated"} }

// Open begins a new session.
func (Isolated) Open(context.Context) (History, error) { return History{}, nil }

// Event returns that of an isolated session.
func (Isolated) Event() session.Kind { return session.IsolatedBg }

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
func (r Routine) Key() string { return paths.RoutinePrefix + r.ID }

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

// Resumed is the session of a background run that continues, such as with the answer to a question.
type Resumed struct {
	Conversation // conversation in which the session began

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

// Question is the session of questions at a shell. It is kept as a transcript only, which has a lock of its own.
type Question struct {
	unkept

	Session string // session to continue; "" begins a new one
	Branch  bool   // branch Session, which is not the session of a question or must not change
	Follow  bool   // Session is continued where a compaction took it
	Discard bool   // no transcript is kept
}

// Traits returns those of a run outside the main conversation.
func (Question) Traits() Traits { return Traits{Mode: "ask"} }

// Open continues or branches the session. A session that no longer exists is an error, because the owner named it.
func (q Question) Open(context.Context) (History, error) {
	h := History{Session: q.Session, Follow: q.Follow, Discard: q.Discard, Missing: fail}
	if q.Branch {
		h.Session, h.Parent = "", q.Session
	}
	return h, nil
}
