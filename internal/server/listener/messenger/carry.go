package messenger

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ollim/ollim/internal/state/outbox"
)

// Carry sends the parts of a message of the outbox that have no id yet, in order. done are the ids of the parts that were sent before;
// delivered gets the id of each further one.
func Carry(o Outgoing, id string, able Able, done []string, delivered func(id string), send func(part Outgoing) (Sent, error)) error {
	parts := Parts(id, o, able)
	for _, part := range parts[min(len(done), len(parts)):] {
		sent, err := send(part)
		if err != nil {
			return err
		}
		delivered(sent.ID)
	}
	return nil
}

// Letter returns a message of the outbox as it is sent to the owner. A file that is gone by now, or has more bytes than most, is named in
// its place.
func Letter(m outbox.Message, able Able, most int) Outgoing {
	o := Outgoing{Text: cmp.Or(m.Brief, m.Text), Buttons: m.Buttons}
	if m.File == "" {
		return o
	}
	data, err := read(m.File)
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s: larger than the %d bytes that the messenger takes", m.File, most)
	}
	if err != nil {
		o.Text += "\n" + able.Style.Line("The file could not be sent: "+err.Error())
		return o
	}
	o.Files = []File{{Name: filepath.Base(m.File), Data: data}}
	return o
}

func read(path string) ([]byte, error) {
	if err := outbox.CheckFile(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// ToOwner sends messages of the outbox to the owner's channel of a messenger.
type ToOwner struct {
	// Use calls do with the messenger and the channel. Its error is an *outbox.Elsewhere if another process has the messenger.
	Use func(ctx context.Context, do func(to Messenger, channel string) error) error

	Messenger string // its name
}

// Name names the carrier in the outbox.
func (c ToOwner) Name() string { return c.Messenger }

// Carry sends the parts of a message that have no id yet.
func (c ToOwner) Carry(ctx context.Context, m outbox.Message, done []string, delivered func(id string)) (outbox.Fate, error) {
	err := c.Use(ctx, func(to Messenger, channel string) error {
		return Carry(Letter(m, to.Able(), to.Able().File), m.ID, to.Able(), done, delivered, func(part Outgoing) (Sent, error) { return to.Send(ctx, channel, part) })
	})
	switch {
	case err == nil:
		return outbox.Sent, nil
	case IsRefused(err):
		return outbox.Refused, err
	}
	return outbox.Queued, err
}
