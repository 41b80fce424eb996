package door

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Bot is a door as a messenger. Its requests wait while no door is connected. Its methods may be used by several goroutines at once.
type Bot struct {
	name  string
	files string // the private directory
	alone bool   // no other connection follows the first

	mu    sync.Mutex
	on    *conn // nil: no door is connected
	next  chan struct{}
	hello Hello
	able  messenger.Able
}

// unnumbered begins the ids that ollim makes for messages without one.
const unnumbered = "none-"

func newBot(name, files string) *Bot {
	return &Bot{name: name, files: files, next: make(chan struct{})}
}

// connect lets requests go to a connection.
func (b *Bot) connect(c *conn, h Hello) error {
	able, err := h.Messenger()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on, b.hello, b.able = c, h, able
	close(b.next)
	return nil
}

// connected returns the connection. Without wait it is nil while there is none.
func (b *Bot) connected(ctx context.Context, wait bool) (*conn, error) {
	for {
		b.mu.Lock()
		on, next := b.on, b.next
		b.mu.Unlock()
		if on != nil || !wait {
			return on, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, errors.Join(errLost, context.Cause(ctx))
		}
	}
}

// ask makes a request. Unless it is to be made once, it is repeated when the messenger asks to wait, and when the door ends before it
// has answered; a message could then be there twice, if the messenger knows no nonces.
func (b *Bot) ask(ctx context.Context, r Request, once bool) (Done, error) {
	for {
		c, err := b.connected(ctx, !once)
		if err != nil {
			return Done{}, err
		}
		if c == nil {
			return Done{}, errLost
		}
		done, err := c.ask(ctx, r)
		wait := messenger.After(err)
		switch {
		case err == nil, once, b.alone && errors.Is(err, errLost), ctx.Err() != nil, wait == 0 && !errors.Is(err, errLost), wait > mostWait:
			return done, err
		case errors.Is(err, errLost):
			b.lost(c)
		case process.Sleep(ctx, wait) != nil:
			return Done{}, err
		}
	}
}

const mostWait = time.Minute // that the messenger may ask for; otherwise the request fails

// lost lets requests wait for another connection than one that has ended.
func (b *Bot) lost(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.on == c {
		b.on, b.next = nil, make(chan struct{})
	}
}

// Able returns what the door can do; nothing before it was connected.
func (b *Bot) Able() messenger.Able {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.able
}

// lacks returns an error if the door cannot do something.
func (b *Bot) lacks(able func(Able) bool, what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if able(b.hello.Able) {
		return nil
	}
	return &messenger.Permanent{Text: "the door " + b.name + " cannot " + what, Refused: true}
}

// unique returns the id of a message as it is in the data directory, and own the messenger's id of it.
func (b *Bot) unique(id string) string { return b.name + "." + id }

func (b *Bot) own(id string) string { return strings.TrimPrefix(id, b.name+".") }

// made returns an id for a message without one.
func (b *Bot) made() string { return b.unique(unnumbered + rand.Text()) }

func (b *Bot) numbered(id string) (string, error) {
	if id == "" {
		return b.made(), nil
	}
	return b.unique(id), checkID("id", id)
}

// reply returns the messenger's id of the message that another one replies to; "" if the messenger does not have it.
func (b *Bot) reply(id string) string {
	own := b.own(id)
	if own == id || strings.HasPrefix(own, unnumbered) {
		return ""
	}
	return own
}

// Send creates a message.
func (b *Bot) Send(ctx context.Context, channel string, o messenger.Outgoing) (sent messenger.Sent, err error) {
	text := o.Text
	if o.Embed != nil {
		text = plaintext.Short(strings.TrimSpace(text+"\n"+o.Embed.Text()), b.Able().Text)
	}
	r := Request{
		Type: TypeSend, Channel: channel, Text: &text, ReplyTo: b.reply(o.ReplyTo), Silent: o.Silent, Buttons: listed(o.Buttons),
		Nonce: cmp.Or(o.Nonce, rand.Text()),
	}
	for _, f := range o.Files {
		if err := b.lacks(func(a Able) bool { return len(f.Data) <= a.File && a.File > 0 }, fmt.Sprintf("send a file of %d bytes", len(f.Data))); err != nil {
			return sent, err
		}
		name, err := b.put(f.Data)
		if err != nil {
			return sent, err
		}
		defer func() { _ = os.Remove(name) }()
		r.Files = append(r.Files, File{f.Name, f.Type, name})
	}
	done, err := b.ask(ctx, r, o.Once)
	if err != nil {
		return sent, err
	}
	if done.Text != nil {
		text = *done.Text
	}
	sent.Text = text
	sent.ID, err = b.numbered(done.ID)
	return sent, err
}

// put writes a file into the private directory.
func (b *Bot) put(data []byte) (path string, err error) {
	f, err := os.CreateTemp(b.files, "out-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Close())
}

// Edit changes a message.
func (b *Bot) Edit(ctx context.Context, channel, id string, o messenger.Outgoing) error {
	r := Request{Type: TypeEdit, Channel: channel, ID: b.own(id), Buttons: listed(o.Buttons)}
	if o.Text != "" {
		r.Text = &o.Text
	}
	_, err := b.ask(ctx, r, o.Once)
	return err
}

// Delete deletes a message.
func (b *Bot) Delete(ctx context.Context, channel, id string) error {
	_, err := b.ask(ctx, Request{Type: TypeDelete, Channel: channel, ID: b.own(id)}, false)
	return err
}

// React adds a reaction.
func (b *Bot) React(ctx context.Context, channel, id, emoji string) error {
	_, err := b.ask(ctx, Request{Type: TypeReact, Channel: channel, ID: b.own(id), Emoji: emoji}, false)
	return err
}

// Unreact removes a reaction.
func (b *Bot) Unreact(ctx context.Context, channel, id, emoji string) error {
	_, err := b.ask(ctx, Request{Type: TypeReact, Channel: channel, ID: b.own(id), Emoji: emoji, Remove: true}, false)
	return err
}

// Typing shows the bot as typing, if the door can do that.
func (b *Bot) Typing(ctx context.Context, channel string) error {
	if b.lacks(func(a Able) bool { return a.Typing }, "") != nil {
		return nil //nolint:nilerr // nobody misses it
	}
	_, err := b.ask(ctx, Request{Type: TypeTyping, Channel: channel}, true)
	return err
}

// Parent returns "": every message says what its channel is a thread of.
func (*Bot) Parent(context.Context, string) (string, error) { return "", nil }

// Quote returns what a message says.
func (b *Bot) Quote(ctx context.Context, channel, id string) (string, error) {
	if err := b.lacks(func(a Able) bool { return a.History }, "read earlier messages"); err != nil {
		return "", err
	}
	done, err := b.ask(ctx, Request{Type: TypeQuote, Channel: channel, ID: b.own(id)}, false)
	if err != nil || done.Text == nil {
		return "", err
	}
	return *done.Text, nil
}

// History returns messages of a channel. Faulty ones are left out.
func (b *Bot) History(ctx context.Context, channel, after string, limit int) (list []*messenger.Message, err error) {
	done, err := b.ask(ctx, Request{Type: TypeHistory, Channel: channel, After: b.own(after), Limit: limit}, false)
	if err != nil {
		return nil, err
	}
	for _, m := range done.Messages {
		if received, err := b.received(m); err == nil && m.ID != "" && m.Channel == channel {
			list = append(list, received)
		}
	}
	return list, nil
}

// Download returns the content of a file.
func (b *Bot) Download(ctx context.Context, address string, most int64) (data []byte, err error) {
	name := "in-" + rand.Text()
	r := Request{Type: TypeFetch, Address: address, Most: most, Path: b.files + "/" + name}
	defer func() { _ = os.Remove(r.Path) }()
	if _, err := b.ask(ctx, r, false); err != nil {
		return nil, err
	}
	private, err := os.OpenRoot(b.files) // a sealed door could leave a link to what it may not read
	if err != nil {
		return nil, err
	}
	defer func() { _ = private.Close() }()
	f, err := private.Open(name)
	if err != nil {
		return nil, &messenger.Permanent{Text: "the door did not put the file where it was asked to", Refused: true}
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, errors.Join(err, &messenger.Permanent{Text: fmt.Sprintf("the file has more than %d bytes", most), Refused: true})
	}
	return io.ReadAll(io.LimitReader(f, most))
}

func tooLong() error {
	return &messenger.Permanent{Text: fmt.Sprintf("the line would have more than %d bytes", MaxLine), Refused: true}
}
