package door

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// ErrNoDirect is the error of a message to an owner whose direct messages are not known.
var ErrNoDirect = errors.New("the channel of your direct messages is not known: write to the bot once while ollim door serve runs")

// Once starts a door for requests, while it is not served.
type Once struct {
	Program

	Home  paths.Dir
	Disk  store.Disk
	Owner string // a user id; "": the first whom the door names
}

// Use calls do with the door and the channel of the owner's direct messages, "" if it is not known. The error is an *outbox.Elsewhere while
// the door is served.
func (o Once) Use(ctx context.Context, do func(to messenger.Messenger, channel string) error) error {
	claim, err := listener.NewClaim(ctx, o.Home, o.Disk, o.Name)
	if errors.Is(err, lock.ErrBusy) {
		return &outbox.Elsewhere{Name: o.Name}
	}
	if err != nil {
		return err
	}
	defer claim.Close()
	bot, end, err := Dial(ctx, o.Program)
	if err != nil {
		return err
	}
	defer end()
	return do(claim.Messenger(bot), claim.Direct(o.Owner, bot.self()))
}

// self returns what the door has said about the bot.
func (b *Bot) self() listener.Self {
	b.mu.Lock()
	defer b.mu.Unlock()
	return listener.Self{Owners: b.hello.Owners, Direct: b.hello.Direct}
}

// Carrier returns a door as a carrier of the outbox. use is as Once.Use.
func Carrier(name string, use func(ctx context.Context, do func(to messenger.Messenger, channel string) error) error) outbox.Carrier {
	return messenger.ToOwner{Messenger: name, Use: func(ctx context.Context, do func(to messenger.Messenger, channel string) error) error {
		return use(ctx, func(to messenger.Messenger, channel string) error {
			if channel == "" {
				return ErrNoDirect
			}
			return do(to, channel)
		})
	}}
}

// delivering lets the outbox of the settings send by the door that is served.
func (s *server) delivering(home func() (listener.Home, error)) func() (listener.Home, error) {
	own := Carrier(s.o.Name, func(_ context.Context, do func(to messenger.Messenger, channel string) error) error {
		return do(s.Messenger, s.Direct())
	})
	return func() (listener.Home, error) {
		h, err := home()
		if err == nil {
			h.Runner.Outbox = h.Runner.Outbox.With(own)
		}
		return h, err
	}
}
