// Package conversation provides the history of a run and keeps what the run adds to it. A Conversation says which session a turn
// continues or branches, where the session's id is kept, and which pending updates the turn is shown. A Turn is one run's part of a
// conversation: it holds the conversation's lock, adds the updates to the prompt, calls the engine, and saves the session's id as soon
// as the engine reports it.
package conversation

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Conversation is one kind of conversation. Its methods are called by one run at a time, except for Traits and Key.
type Conversation interface {
	// Traits returns what the conversation means for the rights of its runs and for their records.
	Traits() Traits

	// Key names the conversation's lock, such as main or routine-c44e97cf; "" for a session that no other run uses.
	Key() string

	// Open returns the history that the next turn begins with. The lock of Key, if there is one, is held, except by Preview.
	Open(ctx context.Context) (History, error)

	// Save stores the id of the session. It is called under the lock, as soon as the engine reports the id.
	Save(ctx context.Context, id string) error

	// Updates returns which pending updates a turn is shown.
	Updates() UpdatePolicy

	// Event returns how the session history names a session that begins in this conversation; "" keeps the session out of the
	// history and of what is reported to the main conversation.
	Event() session.Kind
}

// keeper is a Conversation that stores the messages itself. A turn calls these methods in this order.
type keeper interface {
	// Hear is given the message of the turn before the engine is. ctx is that of the turn.
	Hear(ctx context.Context, in prompt.Input)

	// Note is given every event of the turn as it happens.
	Note(e runlog.Event)

	// Restart is called when the engine begins to answer the message anew.
	Restart()

	// End is called after Hear, when the turn ends and the lock is still held.
	End()
}

// Traits of a conversation are part of the record of each of its runs.
type Traits struct {
	Mode       string // as records and lists name the conversation
	Foreground bool   // the owner's own conversation: messages pass without checks, and no report is due
	Shared     bool   // main or a branch of main: all are offered the same tools, so that the prompt cache remains valid
	Persistent bool   // the job's next run continues the session, and the agent may have it compacted
}

// History is what a turn begins with. At most one of Session, Parent and Messages is set, except that Session may have the Parent
// that is branched again if its engine does not have it; with none a new session begins.
type History struct {
	Session  string               // session to continue
	Parent   string               // session to branch
	Messages []transcript.Message // the conversation so far, oldest first, instead of a session
	Follow   bool                 // Session is continued where a compaction took it
	Discard  bool                 // nothing of the session is kept
	Missing  missing
	Tag      string // tag for a message of this turn that has none; "": none
	Preface  string // text before the message of this turn
	From     string // the session of another engine whose last turns the message of this turn repeats; "": none
	Name     string // name of the session that the history comes from, for ollim session clear; "" if it has none

	back  bool // the agent of Session knows the conversation up to where From took it over
	joins bool // Session is not yet the conversation's
}

// missing is what a turn does if its engine no longer has the session.
type missing int

// What can be done about a missing session.
const (
	startAfresh missing = iota // with a new session; the prompt says that the old one is gone
	startNew                   // with a new session, because the old one has never begun
	fail                       // the turn fails
)

// UpdatePolicy says which pending updates a turn is shown.
type UpdatePolicy struct {
	Show  show
	Since time.Time             // later ones only
	Skip  func(run string) bool // reports whether the updates of a run are left out; nil: none are

	// Shown is called once the agent has begun to answer, with the time of the newest update that it was shown; nil: it is not.
	Shown func(ctx context.Context, until time.Time) error
}

// Keeps reports whether the updates that a turn is shown stay pending.
func (p UpdatePolicy) Keeps() bool { return p.Show != pop }

// show is how pending updates are used.
type show int

// How pending updates are used.
const (
	none show = iota
	Peek      // they stay pending
	pop       // they are used up
)
