package discord

import (
	"context"
	"slices"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
)

// party is who speaks, for the listener.
type party int

const (
	nobody party = iota
	owner        // in direct messages
	guest        // somebody whom the owner allows, or the owner in a server
)

// owners returns the user ids of the owner, or of the owners.
func (l *listener) owners(h Home) []string {
	if h.Owner != "" {
		return []string{h.Owner}
	}
	return l.app.Owners
}

// owns reports whether a user is the owner.
func (l *listener) owns(h Home, user string) bool {
	return snowflake(user) != 0 && slices.Contains(l.owners(h), user)
}

// ownsNow is owns with the settings as they are now.
func (l *listener) ownsNow(user string) bool { return l.owns(l.now(), user) }

// party returns who speaks with a message, as far as the message tells: whether a guest's channel is allowed is not decided here.
func (l *listener) party(h Home, m *discordgo.Message) party {
	switch {
	case m.Author == nil, m.Author.Bot, m.WebhookID != "", snowflake(m.ID) == 0, snowflake(m.ChannelID) == 0, snowflake(m.Author.ID) == 0:
		return nobody
	case m.Type != discordgo.MessageTypeDefault && m.Type != discordgo.MessageTypeReply:
		return nobody
	}
	switch {
	case m.GuildID == "" && l.owns(h, m.Author.ID):
		return owner
	case m.GuildID == "" && slices.Contains(h.Allow, m.Author.ID), m.GuildID != "" && len(h.Allow) > 0 && l.addressed(m):
		return guest
	}
	return nobody
}

// addressed reports whether a message in a server is for the bot: it mentions the bot, or replies to the bot and can be read.
func (l *listener) addressed(m *discordgo.Message) bool {
	if slices.ContainsFunc(m.Mentions, func(u *discordgo.User) bool { return u != nil && u.ID == l.self }) || mentions(m.Content, l.self) {
		return true
	}
	return m.ReferencedMessage != nil && m.ReferencedMessage.Author != nil && m.ReferencedMessage.Author.ID == l.self && m.Content != ""
}

// hear handles an event of the gateway. It returns soon: what takes time is done by lanes.
func (l *listener) hear(ctx context.Context, e gateway.Event) {
	switch e.Type {
	case "READY":
		l.Notify("READY=1", "WATCHDOG=1", "STATUS=connected")
		l.catchUp(ctx, false)
	case "RESUMED":
		l.Notify("READY=1", "WATCHDOG=1", "STATUS=connected")
	case "GUILD_CREATE", "THREAD_CREATE", "THREAD_LIST_SYNC":
		l.places.learn(e)
	case "MESSAGE_CREATE":
		m, err := api.Decode[discordgo.Message](e.Data)
		if err != nil { // of which nothing may be in the log
			return
		}
		l.message(ctx, &m)
	case "INTERACTION_CREATE":
		if i, err := api.Decode[discordgo.InteractionCreate](e.Data); err == nil && i.Interaction != nil {
			l.Interact(ctx, i.Interaction)
		}
	case "MESSAGE_REACTION_ADD":
		if r, err := api.Decode[discordgo.MessageReactionAdd](e.Data); err == nil && r.MessageReaction != nil {
			l.React(r.MessageReaction)
		}
	}
}

// message handles a message, which may be one that was handled before.
func (l *listener) message(ctx context.Context, m *discordgo.Message) {
	h := l.now()
	if by := l.party(h, m); by == owner || by == guest && l.mayBeAllowed(h, m) {
		l.lanes.do(m.ChannelID, func() { l.take(ctx, m) })
	}
}

// take handles a message in the lane of its channel, unless it was handled before. It is left for the next start when ctx has ended.
func (l *listener) take(ctx context.Context, m *discordgo.Message) {
	if ctx.Err() != nil || l.handled.has(m.ChannelID, m.ID) {
		return
	}
	h := l.now()
	switch l.party(h, m) {
	case owner:
		if l.handled.earlier[m.ID] {
			l.warn(l.handled.add(m.ChannelID, m.ID, false))
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
