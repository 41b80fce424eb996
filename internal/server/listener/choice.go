package listener

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// offer is the buttons of a message where the messenger has none. A reply with the number of one presses it.
type offer struct {
	Message string          `json:"message"`
	Buttons []outbox.Button `json:"buttons"`
}

// mostOffers is how many messages keep their buttons.
const mostOffers = 50

// offers notes the buttons of a message. Without buttons it is forgotten.
func (h *handled) offers(message string, list []outbox.Button) error {
	list = slices.DeleteFunc(slices.Clone(list), func(b outbox.Button) bool { return b.Disabled })
	return h.change(func(s *noted) {
		s.Offers = slices.DeleteFunc(slices.Clone(s.Offers), func(o offer) bool { return o.Message == message })
		if len(list) > 0 {
			s.Offers = append(s.Offers, offer{message, list})
		}
		s.Offers = s.Offers[max(0, len(s.Offers)-mostOffers):]
	})
}

// offered returns the buttons of a message. One that has none may be one that was just sent, so it waits for those who send buttons.
func (h *handled) offered(message string) []outbox.Button {
	if list := h.buttonsOf(message); list != nil {
		return list
	}
	h.offering.Lock()
	defer h.offering.Unlock()
	return h.buttonsOf(message)
}

// buttonsOf returns the buttons that are noted of a message.
func (h *handled) buttonsOf(message string) []outbox.Button {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.state.Offers {
		if o.Message == message {
			return slices.Clone(o.Buttons)
		}
	}
	return nil
}

// numbered is a messenger. If it has no buttons, they are lines of the text instead.
type numbered struct {
	messenger.Messenger

	handled *handled
}

// Send creates a message. Lines that do not fit it are in one of their own.
func (n numbered) Send(ctx context.Context, channel string, o messenger.Outgoing) (messenger.Sent, error) {
	if len(o.Buttons) == 0 || n.Able().Buttons {
		return n.Messenger.Send(ctx, channel, o)
	}
	n.handled.offering.RLock()
	defer n.handled.offering.RUnlock()
	list, most := o.Buttons, n.Able().Text
	o.Buttons = nil
	lines := n.lines(list)
	if whole := o.Text + "\n" + lines; messenger.Size(whole) <= most {
		o.Text, lines = whole, ""
	}
	sent, err := n.Messenger.Send(ctx, channel, o)
	if err == nil {
		err = n.handled.offers(sent.ID, list)
	}
	if err == nil && lines != "" {
		var more messenger.Sent
		if more, err = n.Messenger.Send(ctx, channel, messenger.Outgoing{Text: lines, ReplyTo: sent.ID}); err == nil {
			err = n.handled.offers(more.ID, list)
		}
	}
	return sent, err
}

// Edit changes a message. A change of its buttons alone is only noted.
func (n numbered) Edit(ctx context.Context, channel, id string, o messenger.Outgoing) error {
	if n.Able().Buttons {
		return n.Messenger.Edit(ctx, channel, id, o)
	}
	list := o.Buttons
	o.Buttons = nil
	if len(list) > 0 && o.Text != "" {
		if whole := o.Text + "\n" + n.lines(list); messenger.Size(whole) <= n.Able().Text {
			o.Text = whole
		}
	}
	if o.Text != "" {
		if err := n.Messenger.Edit(ctx, channel, id, o); err != nil {
			return err
		}
	}
	if list == nil {
		return nil
	}
	return n.handled.offers(id, list)
}

// lines names buttons with their numbers.
func (n numbered) lines(list []outbox.Button) string {
	var lines []string
	for i, b := range list {
		lines = append(lines, n.Able().Style.Line(fmt.Sprintf("%d: %s", i+1, b.Label)))
	}
	return n.Able().Style.Line("Reply to this message with a number:") + "\n" + strings.Join(lines, "\n")
}

// choose presses the button whose number the owner replies, and reports whether a message does that.
func (l *Listener) choose(ctx context.Context, m *messenger.Message) bool {
	number, err := strconv.Atoi(strings.TrimSpace(m.Text))
	if err != nil || m.ReplyTo == "" {
		return false
	}
	list := l.handled.offered(m.ReplyTo)
	if number < 1 || number > len(list) {
		return false
	}
	l.warn(l.handled.add(m.Channel, m.ID, false))
	l.Go(func() { l.Press(ctx, m.Channel, list[number-1].ID, &chosen{l, m, list, false}) })
	return true
}

// chosen is a button that was chosen by its number.
type chosen struct {
	l     *Listener
	m     *messenger.Message
	list  []outbox.Button
	taken bool
}

// Buttons returns those of the message that the number replies to.
func (c *chosen) Buttons() []outbox.Button { return slices.Clone(c.list) }

// Take does nothing: the messenger waits for no answer.
func (c *chosen) Take(context.Context) error {
	c.taken = true
	return nil
}

// Show notes the buttons of the message. Before Take it asks for the number again.
func (c *chosen) Show(ctx context.Context, list []outbox.Button) error {
	if err := c.l.handled.offers(c.m.ReplyTo, list); err != nil || c.taken {
		return err
	}
	return c.Say(ctx, "Reply with the number again within a minute to confirm.")
}

// Say replies with a text.
func (c *chosen) Say(ctx context.Context, text string) error {
	_, err := c.l.API.Send(ctx, c.m.Channel, messenger.Outgoing{Text: text, ReplyTo: c.m.ID})
	return err
}
