package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Carrier sends messages of the outbox to the owner's direct messages, without the gateway, so that a short-lived command can send.
//
// A text that does not fit one message arrives in several, in order, and each is sent once: an attempt that ended in between goes on
// after the parts that have an id, and a part whose answer was lost has the same nonce again. Discord forgets a nonce after some
// minutes. So one part can arrive twice in one case: its answer was lost, or the process killed before it noted the id, and the next
// attempt succeeds only after that.
type Carrier struct {
	Client *Client
	Home   paths.Dir
	Disk   store.Disk
	Owner  string // user id; "" is the owner of the application
	Bot    string // what tells one bot from another, such as its address and token; it is kept as a digest only
}

// Name names the carrier in the outbox.
func (Carrier) Name() string { return "discord" }

// Carry sends the parts of a message that have no id yet.
func (c Carrier) Carry(ctx context.Context, m outbox.Message, done []string, delivered func(id string)) (outbox.Fate, error) {
	letter := messenger.Letter(m, able(), outbox.MaxFile)
	if m.Embed != nil {
		letter.Text, letter.Embed = "", m.Embed
	}
	send := func(part messenger.Outgoing) (messenger.Sent, error) { return c.send(ctx, part) }
	if err := messenger.Carry(letter, m.ID, able(), done, delivered, send); err != nil {
		return fate(err), err
	}
	return outbox.Sent, nil
}

// fate returns what becomes of a message that was not sent. One that waits for another token is sent with that.
func fate(err error) outbox.Fate {
	if messenger.IsPermanent(err) && !errors.Is(err, ErrToken) {
		return outbox.Refused
	}
	return outbox.Queued
}

// send sends one part. A channel that was remembered may have gone with another owner or bot, so it is asked for again once.
func (c Carrier) send(ctx context.Context, part messenger.Outgoing) (messenger.Sent, error) {
	for _, remembered := range []bool{true, false} {
		channel, err := c.channel(ctx, remembered)
		if err != nil {
			return messenger.Sent{}, err
		}
		sent, err := c.Client.Send(ctx, channel, part)
		if err == nil || !remembered || !hasCode(err, unknownChannel, noAccess) {
			return sent, err
		}
	}
	return messenger.Sent{}, ErrRefused
}

// note is what is remembered of the owner's channel, so that a message is one request.
type note struct {
	Bot     string `json:"bot"` // digest of the bot and the configured owner
	Channel string `json:"channel"`
}

// channel returns the channel of the owner's direct messages.
func (c Carrier) channel(ctx context.Context, remembered bool) (string, error) {
	sum := sha256.Sum256([]byte(c.Bot + " " + c.Owner))
	bot := hex.EncodeToString(sum[:8])
	path := c.Home.State("discord_dm.json")
	if remembered {
		if n, err := store.ReadJSON[note](c.Disk, path); err == nil && n.Bot == bot && n.Channel != "" {
			return n.Channel, nil
		}
	}
	owner := c.Owner
	if owner == "" {
		app, err := c.Client.Application(ctx)
		if err != nil {
			return "", err
		}
		if len(app.Owners) == 0 {
			return "", errors.New("the application has no owner: set discord.owner")
		}
		owner = app.Owners[0]
	}
	channel, err := c.Client.OpenDM(ctx, owner)
	if err != nil {
		return "", err
	}
	if err := store.WriteJSON(path, note{bot, channel}, store.Synced); err != nil {
		c.Disk.Warn(err.Error())
	}
	return channel, nil
}

func embed(e outbox.Embed) *discordgo.MessageEmbed {
	color, _ := strconv.ParseUint(cmp.Or(e.Color, "#000000")[1:], 16, 32) // it was checked
	d := &discordgo.MessageEmbed{Title: e.Title, Description: e.Description, URL: e.URL, Color: int(color)}
	for _, f := range e.Fields {
		d.Fields = append(d.Fields, &discordgo.MessageEmbedField{Name: f.Name, Value: f.Value, Inline: f.Inline})
	}
	if e.Footer != "" {
		d.Footer = &discordgo.MessageEmbedFooter{Text: e.Footer}
	}
	return d
}
