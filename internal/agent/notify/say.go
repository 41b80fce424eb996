package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/update"
)

// say puts messages into the outbox, except those that wait for the end of quiet hours. Messages of some kinds become pending updates as
// well, and without a delivery all of them only pending updates.
func (b Book) say(ctx context.Context, made []notice.Message, kind Kind) error {
	var err error
	for _, m := range made {
		t := kind.trait()
		sends := b.Sender.Configured() && (!t.silent || m.Kind == string(outbox.Notice)) // the end can be sent again
		var addErr error
		if t.update || !sends {
			addErr = b.Updates.Add(ctx, m.Text, by(m))
			err = errors.Join(err, addErr)
		}
		switch {
		case !sends && addErr != nil: // the next Sweep tries again
		case !sends:
			err = errors.Join(err, b.Notices.Say(context.WithoutCancel(ctx), m))
		case m.Critical || !b.Quiet.Contains(b.now()):
			err = errors.Join(err, b.send(ctx, m))
		}
	}
	return err
}

// by returns the reporter of an update.
func by(m notice.Message) string {
	if m.Run != "" {
		return m.Run
	}
	return "ollim"
}

// send puts a message into the outbox, and removes it and the messages that it replaces from the notices.
func (b Book) send(ctx context.Context, m notice.Message, others ...notice.Message) error {
	m = b.numbered(ctx, m)
	queued, cancel := context.WithCancel(ctx)
	cancel() // nothing waits for the delivery
	receipt, err := b.Sender.Send(queued, outbox.Message{
		ID: m.ID, Run: m.Run, Job: m.Job, Label: m.Label, Kind: outbox.Kind(m.Kind), Critical: m.Critical, Text: m.Text, Created: b.now(),
	})
	if receipt.Fate == "" && !errors.Is(err, outbox.ErrTaken) {
		return err // it stays for the next Sweep
	}
	return b.Notices.Say(context.WithoutCancel(ctx), append(others, m)...)
}

// numbered gives a message of a run its id among the messages of that run. The id is in the notices before the message is in the outbox, so
// that the next attempt after a kill uses the same id.
func (b Book) numbered(ctx context.Context, m notice.Message) notice.Message {
	if m.Run == "" || b.Number == nil || !strings.HasPrefix(m.ID, idPrefix) {
		return m
	}
	id, err := b.Number(ctx, m.Run, m.Text)
	if err != nil {
		return m // the record of its run is gone
	}
	err = b.Notices.Edit(ctx, func(p *notice.Page) bool {
		i := slices.IndexFunc(p.Unsent, func(u notice.Message) bool { return u.ID == m.ID })
		if i < 0 {
			return false
		}
		p.Unsent[i].ID = id
		return true
	})
	if err == nil {
		m.ID = id
	}
	return m
}

// Sweep sends what is due: that a cause is back and lasts, the reminder of the day, the end of a cause that ends by itself, and what was
// held in quiet hours. It removes causes that ended some time ago.
func (b Book) Sweep(ctx context.Context) error {
	if b.Notices.Empty() {
		return nil
	}
	now := b.now()
	p, err := b.Notices.Read()
	if err != nil {
		return err
	}
	for key, e := range p.Causes {
		if e.Open() && !e.Until.IsZero() && !now.Before(e.Until) {
			err = errors.Join(err, b.Close(ctx, key, NoLonger))
		}
	}
	if b.due(&p) {
		err = errors.Join(err, b.Notices.Edit(ctx, b.due))
	}
	return errors.Join(err, b.release(ctx))
}

// due makes the messages that are due by time alone. release sends them as one.
func (b Book) due(p *notice.Page) (changed bool) {
	now := b.now()
	for _, key := range slices.Sorted(maps.Keys(p.Causes)) {
		e := p.Causes[key]
		switch {
		case !e.Open():
			if !b.within(e.Closed, calm) && !b.within(e.Told, calm) {
				delete(p.Causes, key)
				changed = true
			}
			continue
		case b.Quiet.Contains(now):
			continue
		case e.Said && (b.within(e.Told, reminding) || !e.Fresh && !Kind(e.Kind).trait().lasts), !e.Said && b.within(e.Told, calm):
			continue
		}
		m := b.message(key, e, reminder(e, b.Zone), outbox.Failure, "")
		e.Said, e.Told, e.Fresh, m.Critical, m.At = true, now.UTC(), false, false, now.Add(-settling).UTC()
		p.Set(key, e)
		p.Unsent = append(p.Unsent, m)
		changed = true
	}
	return changed
}

// release sends the messages that wait, those that are not critical as one. In quiet hours it sends only critical messages. What cannot be
// sent becomes one pending update.
func (b Book) release(ctx context.Context) error {
	p, err := b.Notices.Read()
	if err != nil || len(p.Unsent) == 0 {
		return err
	}
	now := b.now()
	var held, kept []notice.Message
	for _, m := range p.Unsent {
		kind, _, _ := strings.Cut(m.Cause, " ")
		switch {
		case now.Sub(m.At) < settling && !now.Before(m.At): // the process that made it is about to send it
		case !b.Sender.Configured() || Kind(kind).trait().silent && m.Kind == string(outbox.Failure):
			kept = append(kept, m)
		case m.Critical:
			err = errors.Join(err, b.send(ctx, m))
		case !b.Quiet.Contains(now):
			held = append(held, m)
		}
	}
	if len(held) > 0 {
		err = errors.Join(err, b.send(ctx, b.together(held), held...))
	}
	if len(kept) > 0 {
		m := b.together(kept)
		addErr := b.Updates.Add(ctx, m.Text, by(m))
		if err = errors.Join(err, addErr); addErr == nil {
			err = errors.Join(err, b.Notices.Say(context.WithoutCancel(ctx), kept...))
		}
	}
	return err
}

// together returns one message for several.
func (b Book) together(held []notice.Message) notice.Message {
	if len(held) == 1 {
		return held[0]
	}
	slices.SortStableFunc(held, func(a, b notice.Message) int { return a.At.Compare(b.At) })
	text := fmt.Sprintf("%d notices:", len(held))
	share := (update.MaxChars - 100) / len(held)
	for _, m := range held {
		text += "\n\n" + m.At.In(b.Zone).Format("Mon 15:04") + "  " + shorten(m.Text, share)
	}
	last := held[len(held)-1]
	return notice.Message{ID: last.ID, Cause: last.Cause, Kind: string(outbox.Notice), Label: "ollim", Text: update.Clean(text), At: last.At}
}
