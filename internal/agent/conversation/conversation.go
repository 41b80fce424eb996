// Package conversation is where a run's history comes from and what becomes of it. A Conversation says which session a turn
// continues or branches, where the session's id is kept, and what the turn is shown of pending updates. A Turn is one run's part
// of a conversation: it holds the conversation's lock, hands over updates, lets the engine answer, and saves the session's id the
// moment that the engine reports it.
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

	// Key names the conversation's lock, such as main or routine-c44e97cf; "" for a session that no other run can know of.
	Key() string

	// Open returns the history that the next turn begins with. The lock of Key, if there is one, is held, or the history is
	// only looked at.
	Open(ctx context.Context) (History, error)

	// Save keeps the id of the session as it is now. It is called the moment that the engine reports the id, under the lock.
	Save(ctx context.Context, id string) error

	// Updates returns which pending updates a turn is shown.
	Updates() UpdatePolicy

	// Event returns how the session history names a session that begins in this conversation; "" keeps the session out of the
	// history and of what is reported to the main conversation.
	Event() session.Kind
}

// Keeper is a Conversation that keeps the messages itself. A turn of it calls these methods in this order.
type Keeper interface {
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
	Foreground bool   // it is the owner's own: no gate stands before a message, and no report is owed
	Shared     bool   // it is main or a branch of main: all are offered the same tools, so that the model's cache of them holds
	Persistent bool   // the session goes on in the job's next run, and its agent may have it compacted
}

// History is what a turn begins with. At most one of Session, Parent and Messages is set, except that Session may have the Parent
// that is branched again if its engine does not have it; with none a new session begins.
type History struct {
	Session  string               // is continued
	Parent   string               // is branched
	Messages []transcript.Message // the conversation so far, oldest first, instead of a session
	Follow   bool                 // Session is continued where a compaction took it
	Discard  bool                 // nothing of the session is kept
	Missing  Missing
	Opening  Opening // of what the agent is told in this turn
}

// Opening is what a conversation puts in front of a turn's message.
type Opening struct {
	Tag  string // of a message that has none; "": none
	Text string // stands before the message
}

// Missing is what a turn does if its engine no longer has the session.
type Missing int

// What can be done about a missing session.
const (
	StartAfresh Missing = iota // with a new session; the prompt says that the old one is gone
	StartNew                   // with a new session; the old one has not begun
	Fail                       // the turn fails
)

// UpdatePolicy says which pending updates a turn is shown.
type UpdatePolicy struct {
	Show  Show
	Since time.Time             // later ones only
	Skip  func(run string) bool // reports whether the updates of a run are left out; nil: none are

	// Shown is called once the agent has begun to answer, with the time of the newest update that it was shown; nil: it is not.
	Shown func(ctx context.Context, until time.Time) error
}

// Show is how pending updates are used.
type Show int

// How pending updates are used.
const (
	None Show = iota
	Peek      // they stay pending
	Pop       // they are used up
)
