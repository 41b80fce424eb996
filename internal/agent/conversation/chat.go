// Package conversation is a conversation turn: it takes the lock of the session that it writes, hands over what is pending, lets
// the engine answer, and saves the session's id the moment it is known. The main conversation and all kinds of background
// runs go through it; what differs between them is a Place.
package conversation

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// Room is where conversations are held: the state they share.
type Room struct {
	Home     paths.Dir
	Sessions session.Book
	Updates  update.Box
	Runs     runlog.Book
	Watch    func(runlog.Event) // sees every event as it happens; may be nil
	Sleep    func(context.Context, time.Duration) error
}

// Place says which session a conversation continues.
type Place struct {
	Mode    job.Mode
	Routine string    // id, of a persistent one
	Session string    // that a question at a shell continues; "" begins one
	Branch  bool      // the question branches Session instead
	Discard bool      // the question's session is not kept
	Since   time.Time // persistent: updates up to here were already shown

	Own func(run string) bool // persistent: reports whether the run was one of the routine, whose reports its agent knows
}

// Busy says whether the main conversation is in a turn right now.
func (r Room) Busy() bool { return !lock.Free(r.Home.SessionLock("")) }

// Talk is a conversation that nobody else can write until Leave.
type Talk struct {
	room    Room
	place   Place
	engine  engine.Engine
	tools   engine.Tools
	run     *runlog.Run
	guard   *lock.Guard // nil when the session is a new one of its own
	session string      // as it is now; "" before the engine has named it
	parent  string      // what a branch comes from
	former  string      // an id that the engine no longer knows
	spent   float64     // USD in this conversation
	noted   bool        // the session stands in the history for this run
	claim   *update.Claim
	meter   engine.Meter
}

// Enter takes the session's lock, waiting until ctx ends, and finds the session to continue. The error wraps lock.ErrBusy
// when somebody else held it all the time.
func (r Room) Enter(ctx context.Context, p Place, e engine.Engine, tools engine.Tools, record *runlog.Run) (*Talk, error) {
	t := &Talk{room: r, place: p, engine: e, tools: tools, run: record, meter: engine.Meter{Most: engine.MaxRecord}}
	if path := r.lock(p); path != "" {
		if left := r.Runs.Leftover(path); left != nil {
			return nil, left
		}
		guard, err := r.Sessions.Disk.Locks.WaitGuard(ctx, path)
		if err != nil {
			return nil, errors.Join(err, context.Cause(ctx))
		}
		t.guard = guard
		if err := guard.Note(record.ID + "\n"); err != nil {
			t.Leave()
			return nil, err
		}
	}
	var err error
	if t.session, t.parent, err = r.Start(p); err != nil {
		t.Leave()
		return nil, err
	}
	return t, nil
}

// lock is the session's; "" for a session that is new and so nobody else's, and for a question's, whose transcript is locked.
func (r Room) lock(p Place) string {
	switch p.Mode {
	case job.Foreground:
		return r.Home.SessionLock("")
	case job.Persistent:
		return r.Home.SessionLock(p.Routine)
	}
	return ""
}

// Start is the session that a conversation would continue, and the one that it would branch from; both may be "".
func (r Room) Start(p Place) (session, parent string, err error) {
	switch p.Mode {
	case job.Foreground:
		session, err = r.Sessions.Main()
	case job.Persistent:
		session, err = r.Sessions.Routine(p.Routine)
	case job.Forked:
		parent, err = r.Sessions.Main()
	case job.Asked:
		if session = p.Session; p.Branch {
			session, parent = "", p.Session
		}
	}
	return session, parent, err
}

// hold is the locks that the engine keeps after our own death: the session's, and what the caller gives.
func (t *Talk) hold(r engine.Request) []*os.File {
	held := slices.Clone(r.Run.Locks)
	if t.guard != nil {
		held = append(held, t.guard.File())
	}
	return held
}

// Session is the session's id as it is now; "" when it has not begun.
func (t *Talk) Session() string { return t.session }

// Leave gives the session to others.
func (t *Talk) Leave() {
	if t.guard != nil {
		t.guard.Release()
	}
}

// Say tells the agent one thing and lets it answer. The prompt is completed with pending updates and kept in the record.
// Updates that it pops come back when the agent never began to answer.
func (t *Talk) Say(ctx context.Context, b prompt.Brief, r engine.Request) (engine.Result, error) {
	updates, err := t.takeUpdates(ctx)
	if err != nil {
		return engine.Result{}, err
	}
	b.Updates = updates
	begun := t.place.Mode == job.Forked && t.room.Busy() // in its first turn main has no session to branch yet
	result, err := t.say(ctx, b, r)
	switch {
	case !errors.Is(err, engine.ErrSessionUnknown) || t.place.Mode == job.Asked:
	case begun:
		t.parent, t.former = "", t.parent
		result, err = t.say(ctx, b, r)
	default:
		if err := t.lost(ctx); err != nil {
			return result, err
		}
		b.Lost = true
		result, err = t.say(ctx, b, r)
	}
	return result, errors.Join(err, t.settleUpdates(ctx))
}

func (t *Talk) say(ctx context.Context, b prompt.Brief, r engine.Request) (engine.Result, error) {
	r.Input.Prompt = prompt.Build(b)
	if err := t.run.Prompt(r.Input.Prompt); err != nil {
		return engine.Result{}, err
	}
	return t.ask(ctx, r)
}

// Remind asks for something owed, in the same session.
func (t *Talk) Remind(ctx context.Context, text string, r engine.Request) error {
	r.Input.Prompt, r.Input.Nudge = text, true
	_, err := t.ask(ctx, r)
	return err
}

// Compact replaces the session by a summary, when the agent asked for it in this run.
func (t *Talk) Compact(ctx context.Context, r engine.Request) error {
	standing, err := t.run.Standing()
	if err != nil || !standing.Wished {
		return err
	}
	r.Session.ID, r.Run.Locks, r.Limits.Spent = t.session, t.hold(r), t.spent
	if err := r.Limits.Affordable(0); err != nil {
		return err
	}
	_, err = t.engine.Compact(ctx, r, standing.Wish, t.sink(ctx))
	return err
}

// Preview is the prompt that Say would use now; nothing changes.
func (r Room) Preview(ctx context.Context, p Place, b prompt.Brief) (text string, err error) {
	if b.Updates, err = r.peek(ctx, p); err != nil {
		return "", err
	}
	return prompt.Build(b), nil
}
