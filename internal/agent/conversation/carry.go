package conversation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Archive reads the sessions of all engines.
type Archive interface {
	// Holder returns the engine that a session belongs to, "" if no engine gives such ids.
	Holder(id string) string

	// Entries returns what was said in a session, oldest first. An entry without a time and a run has those of the entry before it. The
	// error wraps transcript.ErrUnknown if there is no such session.
	Entries(id string) ([]transcript.Entry, error)
}

// Open returns the history that a turn of a conversation begins with. name is that of the turn's engine. A session of another engine is
// carried over: the turn begins a new session, or continues the conversation's latest session of its own engine, and its message repeats
// the last turns of the other engine.
func (b Book) Open(ctx context.Context, c Conversation, name string) (History, error) {
	h, err := c.Open(ctx)
	if err != nil || b.Archive == nil || c.Event() == "" {
		return h, err
	}
	kind := engine.Kind(name)
	return b.carryOver(c.Key(), h, func(id string) bool {
		if id == "" || engine.Holder(id) == kind { // no transcript need be sought
			return true
		}
		holder := b.Archive.Holder(id)
		return holder == kind || holder == "" // the engine refuses an unknown id
	})
}

// carryOver is Open for a history; own reports whether the turn's engine can continue a session.
func (b Book) carryOver(key string, h History, own func(id string) bool) (History, error) {
	pending, _, err := b.pendingCarry(key, h.Session)
	if err != nil {
		return h, err
	}
	from := h.Session
	switch {
	case pending.From != "" && own(h.Session) && !own(pending.From): // the message with the turns was not answered
		h.Parent, h.From, h.back = "", pending.From, slices.Contains(b.before(pending.From), h.Session)
		return h, nil
	case h.Parent != "" && !own(h.Session):
		from, h.Session = h.Parent, "" // the branch begins again
	case h.Parent != "" && h.Session == "":
		from = h.Parent
	case pending.From != "":
		from = pending.From
	}
	if own(from) {
		if h.Parent == "" {
			h.joins, h.Session = h.Session != from, from
		}
		return h, nil
	}
	h.Session, h.Parent, h.From = "", "", from
	if key == session.MainKey || strings.HasPrefix(key, paths.RoutinePrefix) {
		for _, id := range b.before(from) {
			if _, err := b.Archive.Entries(id); err == nil && own(id) {
				h.Session, h.back, h.joins = id, true, true
				break
			}
		}
	}
	return h, nil
}

// pendingCarry returns the record of a carry into a session if its message was not answered. answered reports that there is a record
// although its message was answered: the turn was killed.
func (b Book) pendingCarry(key, id string) (c session.Carry, answered bool, err error) {
	if key == "" || id == "" {
		return session.Carry{}, false, nil
	}
	c, err = b.Sessions.Carry(key)
	if err != nil || c.To != id {
		return session.Carry{}, false, err
	}
	if b.Updates.Started(c.Run) {
		return session.Carry{}, true, nil
	}
	return c, false, nil
}

// before returns the result of session.Book.Before; nil after an error, and a new session begins.
func (b Book) before(id string) []string {
	line, err := b.Sessions.Before(id)
	if err != nil {
		return nil
	}
	return line
}

// carried returns what a message repeats of the session that the history is carried over from; nil if there is none.
func (b Book) carried(h History) (*prompt.Carried, error) {
	if h.From == "" {
		return nil, nil
	}
	entries, err := b.said(h.From)
	if err != nil && !errors.Is(err, transcript.ErrUnknown) {
		return nil, err
	}
	if h.back {
		if entries, err = b.missed(h, entries); err != nil {
			return nil, err
		}
	}
	c := &prompt.Carried{Engine: b.Archive.Holder(h.From), Back: h.back}
	for _, e := range entries {
		c.Messages = append(c.Messages, e.Message)
	}
	return c, nil
}

// missed returns what was said since the conversation left the history's session, oldest first: in the session that it is carried over
// from, whose entries are last, and in the sessions between the two, which may be of several engines.
func (b Book) missed(h History, last []transcript.Entry) ([]transcript.Entry, error) {
	own, err := b.said(h.Session)
	if err != nil && !errors.Is(err, transcript.ErrUnknown) {
		return nil, err
	}
	left, err := b.Sessions.Left(h.Session)
	if err != nil {
		return nil, err
	}
	var known time.Time // when the agent was last asked in that session; later messages were not answered
	for _, e := range own {
		if e.Message.Role == transcript.User && !e.At.After(left) {
			known = e.At
		}
	}
	list := since(last, known)
	for _, id := range b.before(h.From) {
		older, err := b.said(id)
		if id == h.Session || err != nil { // a deleted session cannot be repeated
			continue
		}
		if older = since(older, known); older == nil {
			break
		}
		list = append(list, older...)
	}
	slices.SortStableFunc(list, func(a, b transcript.Entry) int { return a.At.Compare(b.At) })
	return list, nil
}

// since returns the entries from the first that is later than an instant, nil if there is none.
func since(entries []transcript.Entry, at time.Time) []transcript.Entry {
	i := slices.IndexFunc(entries, func(e transcript.Entry) bool { return e.At.After(at) })
	if i < 0 {
		return nil
	}
	return entries[i:]
}

// said returns the entries of a session, each with a time.
func (b Book) said(id string) ([]transcript.Entry, error) {
	entries, err := b.Archive.Entries(id)
	var at time.Time
	for i := range entries {
		e := &entries[i]
		if e.At.IsZero() {
			e.At = runlog.Began(e.Run)
		}
		if e.At.IsZero() {
			e.At = at
		}
		at = e.At
	}
	return entries, err
}

// beginCarry records, before the engine is asked, that the turn's message repeats turns of another engine, and returns them. It removes the
// record that a killed turn has left, because only the record of its run shows that the message was answered.
func (t *Turn) beginCarry(ctx context.Context) (*prompt.Carried, error) {
	if key := t.conv.Key(); t.history.From == "" {
		_, answered, err := t.book.pendingCarry(key, t.history.Session)
		if answered {
			err = t.book.Sessions.DropCarry(key)
		}
		return nil, err
	}
	carried, err := t.book.carried(t.history)
	if carried == nil || err != nil {
		return nil, err
	}
	if err := t.noteCarry(t.history.Session); err != nil {
		return nil, err
	}
	e := runlog.Event{Type: runlog.CarriedOver, Session: t.history.From, Tool: carried.Engine}
	t.observe(e)
	return carried, t.Run.Event(ctx, e)
}

// noteCarry writes the record of the carry into a session, before the session becomes the conversation's.
func (t *Turn) noteCarry(to string) error {
	key := t.conv.Key()
	if t.history.From == "" || key == "" {
		return nil
	}
	return t.book.Sessions.SetCarry(key, session.Carry{From: t.history.From, To: to, Run: t.Run.ID})
}

// endCarry removes the record once the agent has begun to answer: the session then holds the message.
func (t *Turn) endCarry() error {
	key := t.conv.Key()
	if t.history.From == "" || key == "" {
		return nil
	}
	standing, err := t.Run.Standing()
	if err != nil || !standing.Started {
		return err
	}
	t.history.From = ""
	return t.book.Sessions.DropCarry(key)
}

// join makes the session that the turn continues the conversation's, once its engine has found it.
func (t *Turn) join(ctx context.Context, e runlog.Event) error {
	if t.history.joins = false; e.Session != t.current.session {
		return nil // the engine began another one
	}
	if err := t.noteCarry(e.Session); err != nil {
		return err
	}
	if t.history.From != "" {
		kind := t.conv.Event()
		if kind == session.Created {
			kind = session.Swapped
		}
		event := session.Event{SessionID: e.Session, Event: kind, ParentSessionID: t.history.From}
		if err := t.book.Sessions.Log(context.WithoutCancel(ctx), event); err != nil {
			return err
		}
		t.current.noted = true
	}
	return t.conv.Save(ctx, e.Session)
}
