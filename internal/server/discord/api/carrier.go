package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
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
	parts := Parts(m.ID, c.outgoing(m))
	for _, part := range parts[min(len(done), len(parts)):] {
		id, err := c.send(ctx, part)
		if err != nil {
			return fate(err), err
		}
		delivered(id)
	}
	return outbox.Sent, nil
}

// fate returns what becomes of a message that was not sent. One that waits for another token is sent with that.
func fate(err error) outbox.Fate {
	if Permanent(err) && !errors.Is(err, ErrToken) {
		return outbox.Refused
	}
	return outbox.Queued
}

// send sends one part. A channel that was remembered may have gone with another owner or bot, so it is asked for again once.
func (c Carrier) send(ctx context.Context, part Outgoing) (id string, err error) {
	for _, remembered := range []bool{true, false} {
		channel, err := c.channel(ctx, remembered)
		if err != nil {
			return "", err
		}
		sent, err := c.Client.Send(ctx, channel, part)
		if err == nil {
			return sent.ID, nil
		}
		if !remembered || !hasCode(err, unknownChannel, noAccess) {
			return "", err
		}
	}
	return "", ErrRefused
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

// outgoing returns a message in Discord's form. A file that is gone by now is named in its place.
func (c Carrier) outgoing(m outbox.Message) Outgoing {
	o := Outgoing{Text: cmp.Or(m.Brief, m.Text)}
	if m.Embed != nil {
		o.Text, o.Embed = "", embed(*m.Embed)
	}
	if m.File != "" {
		if data, err := read(m.File); err == nil {
			o.Files = []file{{Name: filepath.Base(m.File), Data: data}}
		} else {
			o.Text += "\n-# The file could not be sent: " + err.Error()
		}
	}
	if len(m.Buttons) > 0 {
		o.Components = Buttons(m.Buttons...)
	}
	return o
}

func read(path string) ([]byte, error) {
	if err := outbox.CheckFile(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
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
