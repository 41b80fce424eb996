package discord

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/runlog"
)

// place is where a channel is.
type place struct {
	guild  string // "": direct messages
	parent string // of a thread: its channel; "" if it is none
}

// places remembers where channels are.
type places struct {
	mu    sync.Mutex
	known map[string]place
}

const mostPlaces = 1000

// find returns where a channel is. It asks Discord once.
func (p *places) find(ctx context.Context, c *api.Client, id string) (place, error) {
	at, ok := p.get(id)
	if ok {
		return at, nil
	}
	found, err := c.Channel(ctx, id)
	if err != nil {
		return place{}, err
	}
	at.guild = found.Guild
	if found.Thread() {
		at.parent = found.Parent
	}
	p.note(id, at)
	return at, nil
}

// learn notes the threads that an event names.
func (p *places) learn(e gateway.Event) {
	type thread struct {
		ID     string `json:"id"`
		Guild  string `json:"guild_id"`
		Parent string `json:"parent_id"`
	}
	about, err := api.Decode[struct { // of a server, or a thread itself
		thread

		Threads []thread `json:"threads"`
	}](e.Data)
	if err != nil {
		return
	}
	if e.Type == "THREAD_CREATE" {
		p.note(about.ID, place{about.Guild, about.Parent})
	}
	for _, t := range about.Threads {
		p.note(t.ID, place{cmp.Or(t.Guild, about.Guild, about.ID), t.Parent})
	}
}

func (p *places) note(id string, at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= mostPlaces {
		p.known = map[string]place{}
	}
	p.known[id] = at
}

func (p *places) get(id string) (place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.known[id]
	return at, ok
}

// mayBeAllowed reports whether a guest's message is in a channel where guests are heard: direct messages, a channel that
// discord.allow lists, or a thread of one. It makes no request: about a thread that is not known it reports true only if the owner or a
// user on the list has spoken.
func (l *listener) mayBeAllowed(h Home, m *discordgo.Message) bool {
	if m.GuildID == "" || slices.Contains(h.Allow, m.ChannelID) {
		return true
	}
	if at, known := l.places.get(m.ChannelID); known {
		return at.parent != "" && slices.Contains(h.Allow, at.parent)
	}
	return l.owns(h, m.Author.ID) || slices.Contains(h.Allow, m.Author.ID)
}

// allowed is mayBeAllowed; about a thread that is not known it asks Discord.
func (l *listener) allowed(ctx context.Context, h Home, m *discordgo.Message) bool {
	if !l.mayBeAllowed(h, m) {
		return false
	}
	if m.GuildID != "" && !slices.Contains(h.Allow, m.ChannelID) {
		err := l.insist(ctx, func() error { _, err := l.places.find(ctx, l.API, m.ChannelID); return err })
		return err == nil && ctx.Err() == nil && l.mayBeAllowed(h, m)
	}
	return true
}

// guestTurn is a turn of a channel's session with what a guest says. It runs in the channel's lane.
func (l *listener) guestTurn(ctx context.Context, h Home, m *discordgo.Message) {
	name, err := channel.NewName("discord", m.ChannelID)
	if err != nil {
		l.warn(err)
		return
	}
	if err := l.handled.add(m.ChannelID, m.ID, true); err != nil {
		l.warn(err) // it is answered, and perhaps again after a restart
	}
	said := l.read(l.turns, h, m)
	said.Source, said.Text = m.ID, l.withoutMention(said.Text)
	if m.GuildID != "" {
		said.Text = m.Author.Username + ": " + said.Text
		if quoted := quoteOf(m.ReferencedMessage); quoted != "" && m.ReferencedMessage.Author.ID != l.self {
			said.Text = "> " + strings.ReplaceAll(quoted, "\n", "\n> ") + "\n\n" + said.Text
		}
	}
	unshown := false
	stream := stream{API: l.API, Now: l.Now, Showing: l.handled.showing(m.ID), Left: func(context.Context, api.Outgoing) error {
		unshown = true // the outbox is the owner's
		return nil
	}}
	_, err = stream.show(l.turns, source{m.ChannelID, m.ID}, func(a *answer) (runlog.Record, error) {
		for _, note := range said.notes {
			a.note(note)
		}
		return turn.New(h.Runner).ChatChannel(l.turns, name, said.Message, turn.Options{Observe: a.observer()})
	})
	l.warn(err)
	if unshown { // until it is shown, here or after the next start
		l.recover(ctx, m.ChannelID, m.ID)
		return
	}
	l.warn(l.handled.close(m.ID))
}

// mentions reports whether a text mentions a user.
func mentions(text, user string) bool {
	return user != "" && (strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@!"+user+">"))
}

// withoutMention returns a text without the mention of the bot.
func (l *listener) withoutMention(text string) string {
	return strings.TrimSpace(strings.NewReplacer("<@"+l.self+">", "", "<@!"+l.self+">", "").Replace(text))
}
