// Package discord is a listener that is connected to Discord as the owner's bot.
//
// The owner is the user of the setting discord.owner, or else the owner of the application, or each member of the team that owns it.
// The setting discord.allow lists others: users, and channels of servers, where a message is for the bot if it mentions the bot or
// replies to it. The package listener decides the rest.
package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Options are what a listener works with. Its messenger is the client.
type Options struct {
	listener.Options

	Client *api.Client
	Token  string
}

// server is one bot that listens.
type server struct {
	*listener.Listener
	*bot

	interactions Interactions
	app          api.Application
	token        string
}

// Run listens until ctx ends, which is no error. Its errors are api.ErrToken, api.ErrClosed, and those of listener.Open and gateway.Run.
func Run(ctx context.Context, o Options) error {
	s := &server{bot: &bot{Client: o.Client}, token: o.Token}
	o.Messenger = s.bot
	var err error
	if s.Listener, err = listener.Open(o.Options); err != nil {
		return err
	}
	defer s.Close()
	s.interactions = Interactions{Actions: o.Actions, API: o.Client}
	h, err := o.Home()
	if err != nil {
		return err
	}
	s.Notify("STATUS=connecting to Discord")
	newest := s.Newest()
	direct, err := s.introduce(ctx, h)
	if err != nil || ctx.Err() != nil {
		return err
	}
	self := listener.Self{Owners: s.app.Owners, Direct: direct}
	s.begin(ctx, h, self, newest)
	if _, err := SyncCommands(ctx, s.Client, h.Dir, h.Disk, s.app.ID, false); err != nil && ctx.Err() == nil {
		s.warn(fmt.Errorf("register the commands: %w", err))
	}
	return s.Run(ctx, self, func(ctx context.Context) error { return s.receive(ctx, h) })
}

func (s *server) warn(err error) {
	if err != nil {
		s.Warn("discord: " + err.Error())
	}
}

// receive handles the events of the gateway until ctx ends.
func (s *server) receive(ctx context.Context, h listener.Home) error {
	o := gateway.Options{Token: s.token, Intents: intents, REST: s.Client, Now: s.Now, Beat: func() { s.Notify("WATCHDOG=1") }}
	o.Log = func(err error) { s.warn(err); s.Notify("STATUS=" + err.Error()) }
	path := h.Dir.State("discord_session.json")
	o.Save = func(g gateway.Saved) { s.warn(store.WriteJSON(path, g, store.Buffered)) }
	o.Saved, _ = store.ReadJSON[gateway.Saved](h.Disk, path)
	return gateway.Run(ctx, o, func(e gateway.Event) { s.hear(ctx, e) })
}

// intents are the events that the listener needs: messages and reactions in direct messages, messages in servers, and where
// their threads are. None of them is privileged; Discord shows the text of a message in a server only if that mentions the bot.
const intents = 1<<12 | 1<<13 | 1<<9 | 1<<0

// introduce asks who owns the bot, and opens the channel of the owner's direct messages. It repeats that until it succeeds, or fails
// for good, or ctx ends.
func (s *server) introduce(ctx context.Context, h listener.Home) (direct string, err error) {
	err = s.Insist(ctx, func() (err error) {
		if s.app, err = s.Application(ctx); err != nil {
			return err
		}
		if s.self, err = s.Me(ctx); err != nil {
			return err
		}
		owners := h.Owned(listener.Self{Owners: s.app.Owners})
		if len(owners) == 0 {
			return fmt.Errorf("%w: the application has no owner: set discord.owner", api.ErrRefused)
		}
		if direct, err = s.open(ctx, owners[0]); err != nil {
			return err
		}
		if err := s.Typing(ctx, direct); errors.Is(err, api.ErrClosed) { // opening the channel does not tell
			return err
		}
		if !s.Knows(direct) {
			err = s.Begin(ctx, direct, "") // where the history ends is where the listener begins
		}
		return err
	})
	return direct, err
}

// begin begins the histories of the channels that are allowed, and of the direct messages of the users that are, so that each has a
// beginning before its first message: that of a channel which an earlier process did not know is newest, the last message that it
// handled. One that cannot be opened is opened at the next start.
func (s *server) begin(ctx context.Context, h listener.Home, self listener.Self, newest string) {
	if api.Snowflake(newest) <= 1 { // nothing was handled yet
		newest = ""
	}
	for _, id := range slices.Concat(h.Owned(self), h.Allow) {
		if s.Knows(id) { // a channel
			continue
		}
		channel, err := s.open(ctx, id)
		if errors.Is(err, api.ErrRefused) { // it is not a user
			channel = id
			_, err = s.places.find(ctx, s.Client, id)
		}
		if err == nil && !s.Knows(channel) {
			err = s.Begin(ctx, channel, newest)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, api.ErrRefused), errors.Is(err, api.ErrClosed): // the bot cannot read there, or somebody takes no messages
		default:
			s.warn(err)
		}
	}
}

// hear handles an event of the gateway, and returns soon.
func (s *server) hear(ctx context.Context, e gateway.Event) {
	switch e.Type {
	case "READY":
		s.Notify("READY=1", "WATCHDOG=1", "STATUS=connected")
		s.CatchUp(ctx)
	case "RESUMED":
		s.Notify("READY=1", "WATCHDOG=1", "STATUS=connected")
	case "GUILD_CREATE", "THREAD_CREATE", "THREAD_LIST_SYNC":
		s.places.learn(e)
	case "MESSAGE_CREATE":
		if m, err := api.Decode[discordgo.Message](e.Data); err == nil { // else nothing of it may be in the log
			s.Hear(ctx, s.received(&m))
		}
	case "MESSAGE_UPDATE":
		if m, err := api.Decode[discordgo.Message](e.Data); err == nil {
			s.Edited(ctx, s.received(&m))
		}
	case "MESSAGE_DELETE":
		if m, err := api.Decode[discordgo.Message](e.Data); err == nil {
			s.Deleted(ctx, m.ChannelID, m.ID)
		}
	case "INTERACTION_CREATE":
		if i, err := api.Decode[discordgo.InteractionCreate](e.Data); err == nil && i.Interaction != nil {
			s.interactions.Interact(ctx, i.Interaction)
		}
	case "MESSAGE_REACTION_ADD":
		if r, err := api.Decode[discordgo.MessageReactionAdd](e.Data); err == nil && r.MessageReaction != nil {
			s.interactions.React(r.MessageReaction)
		}
	}
}

// bot is Discord as a messenger.
type bot struct {
	*api.Client

	self   string // the bot's user id
	places places
}

// Able returns what can be done on Discord.
func (b *bot) Able() messenger.Able {
	able := b.Client.Able()
	able.Mentions = []string{"<@" + b.self + ">", "<@!" + b.self + ">"}
	return able
}

// open opens the channel of the direct messages with a user.
func (b *bot) open(ctx context.Context, user string) (channel string, err error) {
	if channel, err = b.OpenDM(ctx, user); err == nil {
		b.places.note(channel, place{})
	}
	return channel, err
}

// Parent returns the channel of a thread.
func (b *bot) Parent(ctx context.Context, channel string) (string, error) {
	at, err := b.places.find(ctx, b.Client, channel)
	return at.parent, err
}

// Quote returns what a message says.
func (b *bot) Quote(ctx context.Context, channel, id string) (string, error) {
	m, err := b.Message(ctx, channel, id)
	return quoteOf(m), err
}

// History returns messages of a channel. About each Discord leaves out where it is.
func (b *bot) History(ctx context.Context, channel, after string, limit int) (list []*messenger.Message, err error) {
	at, err := b.places.find(ctx, b.Client, channel)
	if err != nil {
		return nil, err
	}
	found, err := b.Client.History(ctx, channel, after, limit)
	for _, m := range found {
		m.GuildID = at.guild
		list = append(list, b.received(m))
	}
	return list, err
}
