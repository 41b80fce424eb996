package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// Book holds what the conversations of one data directory share.
type Book struct {
	Home     paths.Dir
	Sessions session.Book
	Updates  update.Box
	Runs     runlog.Book
	Archive  Archive                                    // nil: no session is carried over to another engine
	Sleep    func(context.Context, time.Duration) error // returns early, with its error, when the context ends
}

// Busy reports whether the main conversation is in a turn.
func (b Book) Busy() bool { return !lock.Free(b.Home.ConversationLock(session.MainKey)) }

// Parts are what a turn works with.
type Parts struct {
	Engine  engine.Engine
	Tools   engine.Tools
	Run     *runlog.Run
	Observe func(runlog.Event) // sees every event of the turn as it happens; may be nil
}

// Turn is one run's part of a conversation. No other process can change the conversation until Close.
type Turn struct {
	Parts

	Request  engine.Request // the request to the engine without prompt and session; set before the engine is called
	Fallback Fallback       // what to ask if its model cannot be used

	book    Book
	conv    Conversation
	history History
	guard   *lock.Guard // nil without a key
	current current
	keeper  keeper  // nil until it has heard the message
	spent   float64 // USD, in this turn
	answer  string  // the agent's last answer
	updates updates
	meter   meter
	model   string // of the session, as the engine last named it
	shown   bool   // a person may have read a part of an answer
}

// updates are the pending updates that the turn is shown.
type updates struct {
	claim  *update.Claim   // claim on popped updates; nil: they stay pending
	peeked []update.Update // updates that stay pending
}

// current is the session as it is now.
type current struct {
	session string // "" before the engine has named it
	parent  string // session that it is branched from
	former  string // an id that the engine no longer knows, or that another engine holds
	noted   bool   // it is in the history for this run
}

// Begin takes the conversation's lock, waiting until ctx ends, and opens its history. If another process held the lock all the time,
// the error wraps the cause of that end, and lock.ErrBusy unless ctx was cancelled.
func (b Book) Begin(ctx context.Context, c Conversation, p Parts) (*Turn, error) {
	t := &Turn{Parts: p, book: b, conv: c, meter: meter{most: maxRecord}}
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	var err error
	if t.history, err = b.Open(ctx, c, p.Run.Engine); err != nil {
		t.Close()
		return nil, err
	}
	t.current = current{session: t.history.Session, parent: t.history.Parent, former: t.history.From}
	return t, nil
}

func (t *Turn) enter(ctx context.Context) error {
	key := t.conv.Key()
	if key == "" {
		return nil
	}
	path, locks := t.book.Home.ConversationLock(key), t.book.Sessions.Disk.Locks
	guard, err := locks.TryGuard(path)
	if errors.Is(err, lock.ErrBusy) {
		if left := t.book.Runs.Leftover(path); left != nil {
			return left
		}
		guard, err = locks.WaitGuard(ctx, path)
	}
	if err != nil {
		return err
	}
	t.guard = guard
	if err := guard.Note(t.Run.ID + "\n"); err != nil {
		t.Close()
		return err
	}
	return nil
}

// Session returns the session's id as it is now; "" if it has not begun.
func (t *Turn) Session() string { return t.current.session }

// From returns the session of another engine that the turn carries over, "" if there is none.
func (t *Turn) From() string { return t.history.From }

// Name returns what the session is called, or its id, for ollim session compact; "" if another store follows it.
func (t *Turn) Name() string {
	if t.conv.Key() != "" || t.history.Discard {
		return t.history.Name
	}
	return cmp.Or(t.history.Name, t.history.Session)
}

// Answer returns the final text of the agent's last answer.
func (t *Turn) Answer() string { return t.answer }

// Close ends the turn and releases the conversation's lock.
func (t *Turn) Close() {
	if t.keeper != nil {
		t.keeper.End()
		t.keeper = nil
	}
	if t.guard != nil {
		t.guard.Release()
	}
}

// Say sends the agent a message and lets it answer. It adds the pending updates to the prompt and stores the prompt in the record.
// Updates that were popped are pending again if the agent never began to answer.
func (t *Turn) Say(ctx context.Context, in prompt.Input) error {
	shown, err := t.takeUpdates(ctx)
	if err != nil {
		return err
	}
	in.Updates = prompt.Updates{List: shown, Kept: t.conv.Updates().Keeps()}
	in.Task.Tag = cmp.Or(in.Task.Tag, t.history.Tag)
	if in.Carried, err = t.beginCarry(ctx); err != nil {
		return errors.Join(err, t.settleUpdates(ctx))
	}
	if t.history.Preface != "" {
		in.Task.Body = strings.TrimSpace(t.history.Preface + "\n\n" + in.Task.Body)
	}
	if keeper, ok := t.conv.(keeper); ok {
		t.keeper = keeper
		keeper.Hear(ctx, in)
	}
	if in.Told.Session != t.current.session { // compacted or cleared since the record was begun
		in.Told, t.Run.Told = runlog.Told{}, runlog.Told{}
	}
	err = t.say(ctx, in)
	for errors.Is(err, engine.ErrSessionUnknown) && t.history.Missing != fail && t.current.session+t.current.parent != "" {
		if err := t.forget(ctx); err != nil {
			return err
		}
		if t.history.Missing == startAfresh && t.current.parent == "" {
			in.Session = prompt.Lost
		}
		err = t.say(ctx, in)
	}
	if errors.Is(err, engine.ErrForeignSession) && t.history.Name != "" {
		err = fmt.Errorf("%w; start a new session: ollim session clear %s", err, t.history.Name)
	}
	return errors.Join(err, t.endCarry(), t.settleUpdates(ctx))
}

func (t *Turn) say(ctx context.Context, in prompt.Input) error {
	r, p := t.Request, prompt.Build(in)
	r.Input.Prompt = p.Text()
	if err := t.Run.Prompt(p); err != nil {
		return err
	}
	return t.ask(ctx, r)
}

// forget begins again because the engine does not have the session: with a branch of the parent, if there is one, else without
// history. The session history records the old id as the parent of the new one.
func (t *Turn) forget(ctx context.Context) error {
	if t.current.session != "" && t.history.Parent != "" {
		t.current = current{parent: t.history.Parent}
		return nil
	}
	t.current, t.Run.Told = current{former: cmp.Or(t.current.session, t.current.parent)}, runlog.Told{}
	if t.history.Missing == startNew {
		return nil
	}
	return t.Run.Event(ctx, runlog.Event{Type: runlog.SessionLost, Session: t.current.former})
}

// Resume sends the agent another message in the same session, which is not one of the owner's. nudge says that it is a reminder of a duty.
func (t *Turn) Resume(ctx context.Context, text string, nudge bool) error {
	r := t.Request
	r.Input.Prompt, r.Input.Attachments, r.Input.Nudge = text, nil, nudge
	return t.ask(ctx, r)
}

// Compact replaces the session by a summary if the run's events ask for it.
func (t *Turn) Compact(ctx context.Context) error {
	standing, err := t.Run.Standing()
	if err != nil || !standing.Wished {
		return err
	}
	r := t.Request
	r.Session.ID, r.Session.Follow, r.Run.Locks, r.Limits.Spent = t.current.session, t.history.Follow, t.locks(r), t.spent
	if err := r.Limits.Affordable(0); err != nil {
		return err
	}
	_, err = t.Engine.Compact(ctx, r, standing.Wish, t.sink(ctx))
	return err
}

// locks returns the locks that the engine keeps if this process dies: the conversation's, and what the caller gives.
func (t *Turn) locks(r engine.Request) []*os.File {
	held := slices.Clone(r.Run.Locks)
	if t.guard != nil {
		held = append(held, t.guard.File())
	}
	return held
}

// Preview returns the prompt that Say would use now, with an engine. Nothing changes.
func (b Book) Preview(ctx context.Context, c Conversation, engine string, in prompt.Input) (text string, err error) {
	h, err := b.Open(ctx, c, engine)
	if err != nil {
		return "", err
	}
	if in.Carried, err = b.carried(h); err != nil {
		return "", err
	}
	if in.Updates.List, err = b.peek(ctx, c.Updates()); err != nil {
		return "", err
	}
	return prompt.Build(in).Text(), nil
}

// takeUpdates returns the pending updates that the turn is shown. Popped ones are claimed until settleUpdates.
func (t *Turn) takeUpdates(ctx context.Context) ([]update.Update, error) {
	policy := t.conv.Updates()
	if policy.Show != pop {
		list, err := t.book.peek(ctx, policy)
		t.updates.peeked = list
		return list, err
	}
	owner := update.Owner{Run: t.Run.ID, Lock: t.book.Home.ConversationLock(t.conv.Key())}
	claim, err := t.book.Updates.Pop(ctx, owner)
	if err != nil {
		return nil, err
	}
	t.updates.claim = claim
	if len(claim.Updates) == 0 {
		return nil, nil
	}
	e := runlog.Event{Type: runlog.UpdatesPopped, Count: len(claim.Updates)}
	t.observe(e)
	return claim.Updates, t.Run.Event(ctx, e)
}

// peek returns the pending updates that a policy shows, without using them up.
func (b Book) peek(ctx context.Context, policy UpdatePolicy) ([]update.Update, error) {
	if policy.Show == none {
		return nil, nil
	}
	all, err := b.Updates.Peek(ctx)
	if err != nil {
		return nil, err
	}
	if !policy.Since.IsZero() {
		all = slices.DeleteFunc(all, func(u update.Update) bool { return !u.TS.After(policy.Since) })
	}
	if policy.Skip != nil {
		all = slices.DeleteFunc(all, func(u update.Update) bool { return policy.Skip(u.By) })
	}
	return all, nil
}

// settleUpdates records that the shown updates were read, if the agent has begun to answer; if not, popped ones are pending again.
func (t *Turn) settleUpdates(ctx context.Context) error {
	shown := t.conv.Updates().Shown
	if t.updates.claim == nil && (shown == nil || len(t.updates.peeked) == 0) {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // even after a stop
	standing, err := t.Run.Standing()
	if err != nil {
		return err
	}
	if t.updates.claim == nil {
		if !standing.Started {
			return nil
		}
		newest := slices.MaxFunc(t.updates.peeked, func(a, b update.Update) int { return a.TS.Compare(b.TS) })
		return shown(ctx, newest.TS)
	}
	if standing.Started {
		return t.updates.claim.Deliver(ctx)
	}
	return t.updates.claim.Return(ctx)
}
