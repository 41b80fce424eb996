package listener

import (
	"context"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/server/listener/stream"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/runlog"
)

// party is who speaks, for the listener.
type party int

const (
	nobody party = iota
	owner        // in direct messages
	guest        // somebody whom the owner allows, or the owner among others
)

// owns reports whether a user is the owner.
func (l *Listener) owns(h Home, user string) bool {
	return user != "" && slices.Contains(h.Owned(l.self), user)
}

// ownsNow is owns with the settings as they are now.
func (l *Listener) ownsNow(user string) bool { return l.owns(l.now(), user) }

// party returns who speaks with a message, as far as the message tells: whether a guest's channel is allowed is not decided here.
func (l *Listener) party(h Home, m *messenger.Message) party {
	switch {
	case m.User == "":
		return nobody
	case m.Direct && l.owns(h, m.User):
		return owner
	case m.Direct && slices.Contains(h.Allow, m.User), !m.Direct && len(h.Allow) > 0 && m.Addressed:
		return guest
	}
	return nobody
}

// Hear handles a message, which may be one that was handled before. It returns soon: what takes time is done by lanes. A message that is
// not taken when ctx ends must be delivered to the next listener.
func (l *Listener) Hear(ctx context.Context, m *messenger.Message) {
	taken := func() {
		if m.Taken != nil && (ctx.Err() == nil || l.handled.has(m.Channel, m.ID)) {
			m.Taken()
		}
	}
	h := l.now()
	if by := l.party(h, m); by != owner && (by != guest || !l.mayBeAllowed(h, m)) {
		taken()
		return
	}
	l.heard.put(m)
	l.lanes.do(m.Channel, func() {
		l.catchUp(ctx, m.Channel)
		if last, deleted := l.heard.next(m); deleted {
			l.forgo(ctx, m)
		} else {
			l.take(ctx, last)
		}
		taken()
	})
}

// take handles a message as it is now in the lane of its channel, unless it was handled before. It is left for the next start when ctx has
// ended.
func (l *Listener) take(ctx context.Context, came *messenger.Message) {
	if ctx.Err() != nil || l.handled.has(came.Channel, came.ID) {
		return
	}
	m := l.heard.newest(came)
	if m == nil {
		l.forgo(ctx, came)
		return
	}
	h := l.now()
	switch l.party(h, m) {
	case owner:
		l.warn(l.handled.wrote(h.Owned(l.self), m.User, m.Channel))
		if l.handled.earlier[m.ID] {
			l.warn(l.handled.add(m.Channel, m.ID, false))
			return
		}
		l.talk(ctx, h, m)
	case guest:
		if l.allowed(ctx, h, m) {
			l.guestTurn(ctx, h, m)
		}
	case nobody: // by settings that have just changed
	}
}

// mayBeAllowed reports whether a guest's message is in a channel where guests are heard: direct messages, a channel that the settings
// allow, or a thread of one. It makes no request: about a thread that is not known it reports true only if the owner or an allowed
// user has spoken.
func (l *Listener) mayBeAllowed(h Home, m *messenger.Message) bool {
	switch {
	case m.Direct, slices.Contains(h.Allow, m.Channel):
		return true
	case m.Placed:
		return m.Parent != "" && slices.Contains(h.Allow, m.Parent)
	}
	return l.owns(h, m.User) || slices.Contains(h.Allow, m.User)
}

// allowed is mayBeAllowed; about a thread that is not known it asks the messenger.
func (l *Listener) allowed(ctx context.Context, h Home, m *messenger.Message) bool {
	if !l.mayBeAllowed(h, m) {
		return false
	}
	if !m.Direct && !m.Placed && !slices.Contains(h.Allow, m.Channel) {
		err := l.Insist(ctx, func() (err error) {
			m.Parent, err = l.Messenger.Parent(ctx, m.Channel)
			return err
		})
		m.Placed = true
		return err == nil && ctx.Err() == nil && l.mayBeAllowed(h, m)
	}
	return true
}

// guestTurn is a turn of a channel's session with what a guest says. It runs in the channel's lane.
func (l *Listener) guestTurn(ctx context.Context, h Home, m *messenger.Message) {
	name, err := channel.NewName(l.Name, m.Channel)
	if err != nil {
		l.warn(err)
		return
	}
	if err := l.handled.add(m.Channel, m.ID, true); err != nil {
		l.warn(err) // it is answered, and perhaps again after a restart
	}
	said := l.read(l.turns, h, m)
	newest := l.heard.newest(m) // it may have changed during the downloads
	if newest == nil {
		l.warn(l.handled.close(m.ID))
		return
	}
	said.Source, said.Text = m.ID, l.withoutMention(said.as(newest.Text))
	if !m.Direct {
		said.Text = m.Name + ": " + said.Text
		if q := m.Quoted; q != nil && q.Text != "" && !q.Own {
			said.Text = "> " + strings.ReplaceAll(q.Text, "\n", "\n> ") + "\n\n" + said.Text
		}
	}
	unshown := false
	show := stream.Stream{API: l.API, Now: l.Now, Showing: l.handled.showing(m.ID), Left: func(context.Context, messenger.Outgoing) error {
		unshown = true // the outbox is the owner's
		return nil
	}}
	_, err = show.Show(l.turns, stream.Source{Channel: m.Channel, Message: m.ID}, func(a *stream.Answer) (runlog.Record, error) {
		for _, note := range said.notes {
			a.Note(note)
		}
		return turn.New(h.Runner).ChatChannel(l.turns, name, said.Message, turn.Options{Observe: a.Observer()})
	})
	l.warn(err)
	if unshown { // until it is shown, here or after the next start
		l.recover(ctx, m.Channel, m.ID)
		return
	}
	l.warn(l.handled.close(m.ID))
}

// withoutMention returns a text without what mentions the bot.
func (l *Listener) withoutMention(text string) string {
	for _, name := range l.API.Able().Mentions {
		text = strings.ReplaceAll(text, name, "")
	}
	return strings.TrimSpace(text)
}
