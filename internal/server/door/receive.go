package door

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"unicode"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Limits of what a message says.
const (
	maxUser  = 200 // bytes
	maxName  = 100 // characters
	maxFiles = 100
)

// received returns a message as the listener takes it. The error names the key that is wrong.
func (b *Bot) received(m Message) (*messenger.Message, error) {
	id, err := b.numbered(m.ID)
	r := &messenger.Message{
		ID: id, Channel: m.Channel, User: m.User, Name: plaintext.Short(plaintext.Line(cmp.Or(m.Name, m.User)), maxName), Own: m.Own,
		Direct: m.Direct, Placed: true, Parent: m.Parent, Addressed: m.Addressed, Text: m.Text, Again: m.Again && m.ID == "",
	}
	err = errors.Join(err, checkID("channel", m.Channel))
	if m.Parent != "" {
		err = errors.Join(err, checkID("parent", m.Parent))
	}
	if m.ReplyTo != "" {
		err = errors.Join(err, checkID("reply_to", m.ReplyTo))
		r.ReplyTo = b.unique(m.ReplyTo)
	}
	if q := m.Quoted; q != nil {
		r.Quoted = &messenger.Quoted{Text: q.Text, Own: q.Own}
	}
	err = errors.Join(err, checkUser(m.User))
	for i, f := range m.Files[:min(len(m.Files), maxFiles)] {
		file := messenger.Received{ID: b.unique(cmp.Or(f.ID, unnumbered+rand.Text())), Name: f.Name, Size: f.Size, Address: f.Address, Voice: f.Voice}
		if f.ID != "" {
			err = errors.Join(err, checkID(fmt.Sprintf("files[%d].id", i), f.ID))
		}
		r.Files = append(r.Files, file)
	}
	return r, err
}

// changed returns the message of a line about an edit or a deletion. The error names the key that is wrong.
func (b *Bot) changed(l line) (*messenger.Message, error) {
	m, err := decode[Message](l.data)
	if err != nil {
		return nil, err
	}
	received, err := b.received(m)
	return received, errors.Join(err, checkID("id", m.ID))
}

// checkUser returns an error if a text is not the id of a user, or "".
func checkUser(id string) error {
	if len(id) > maxUser || slices.ContainsFunc([]rune(id), unicode.IsControl) {
		return fmt.Errorf("user: no id: want at most %d bytes without control characters", maxUser)
	}
	return nil
}

// press is a press of a button, as the listener answers it.
type press struct {
	Press

	bot   *Bot
	line  func(any) error
	taken bool
}

// Buttons returns those of the message.
func (p *press) Buttons() []outbox.Button {
	if len(p.Press.Buttons) == 0 { // not known
		return []outbox.Button{{ID: p.Button, Label: "this"}}
	}
	return unlisted(p.Press.Buttons)
}

// Take says that the press was received.
func (p *press) Take(context.Context) error {
	if !p.taken {
		p.taken = true
		return p.line(Pressed{TypePressed, p.ID})
	}
	return nil
}

// Show changes the buttons of the message. If they are not known, and the press is done, they are removed.
func (p *press) Show(ctx context.Context, list []outbox.Button) error {
	if len(p.Press.Buttons) == 0 && p.taken {
		list = []outbox.Button{}
	}
	err := p.bot.Edit(ctx, p.Channel, p.bot.unique(p.Message), messenger.Outgoing{Buttons: list})
	return errors.Join(err, p.Take(ctx))
}

// Say replies to the message of the button.
func (p *press) Say(ctx context.Context, text string) error {
	_, err := p.bot.Send(ctx, p.Channel, messenger.Outgoing{Text: text, ReplyTo: p.bot.unique(p.Message)})
	return err
}
