package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// body is a message in Discord's form. Nothing in it becomes null.
type body struct {
	Content    string                        `json:"content,omitempty"`
	Embeds     []*discordgo.MessageEmbed     `json:"embeds,omitempty"`
	Components *[]discordgo.MessageComponent `json:"components,omitempty"`
	Mentions   mentions                      `json:"allowed_mentions"`
	Reference  *reference                    `json:"message_reference,omitempty"`
	Flags      discordgo.MessageFlags        `json:"flags,omitempty"`
	Nonce      string                        `json:"nonce,omitempty"`
	Enforce    bool                          `json:"enforce_nonce,omitempty"`
}

// mentions allows no mention to notify anybody.
type mentions struct {
	Parse   [0]string `json:"parse"`
	Replied bool      `json:"replied_user"`
}

type reference struct {
	Message string `json:"message_id"`
	Fail    bool   `json:"fail_if_not_exists"`
}

// bodyOf returns the message for a request that changes one; a creation adds more.
func bodyOf(o messenger.Outgoing) body {
	b := body{Content: o.Text}
	if o.Embed != nil {
		b.Embeds = []*discordgo.MessageEmbed{embed(*o.Embed)}
	}
	if o.Buttons != nil {
		rows := rows(o.Buttons)
		b.Components = &rows
	}
	return b
}

// Send creates one message and returns it. A repetition with the same nonce returns the message that is there.
func (c *Client) Send(ctx context.Context, channel string, o messenger.Outgoing) (messenger.Sent, error) {
	b := bodyOf(o)
	if o.Silent {
		b.Flags = discordgo.MessageFlagsSuppressNotifications
	}
	if o.ReplyTo != "" {
		b.Reference = &reference{Message: o.ReplyTo}
	}
	if b.Nonce, b.Enforce = o.Nonce, true; b.Nonce == "" {
		b.Nonce = randomNonce()
	}
	at := messages(channel)
	m, err := c.message(ctx, request{method: http.MethodPost, route: at, path: at, body: b, files: o.Files, safe: true, once: o.Once})
	if err != nil {
		return messenger.Sent{}, err
	}
	return messenger.Sent{ID: m.ID, Text: m.Content}, nil
}

// Edit changes one message.
func (c *Client) Edit(ctx context.Context, channel, id string, o messenger.Outgoing) error {
	_, err := c.message(ctx, request{
		method: http.MethodPatch, route: messages(channel), path: messages(channel) + "/" + id,
		body: bodyOf(o), files: o.Files, safe: true, once: o.Once,
	})
	return err
}

// Delete deletes one message. One that is gone already is no error.
func (c *Client) Delete(ctx context.Context, channel, id string) error {
	err := c.do(ctx, request{method: http.MethodDelete, route: messages(channel), path: messages(channel) + "/" + id, safe: true}, nil)
	return ignore(err, unknownMessage)
}

// React adds a reaction of the bot: an emoji such as 👀.
func (c *Client) React(ctx context.Context, channel, id, emoji string) error {
	return c.reaction(ctx, http.MethodPut, channel, id, emoji)
}

// Unreact removes a reaction of the bot. One that is gone already is no error.
func (c *Client) Unreact(ctx context.Context, channel, id, emoji string) error {
	return ignore(c.reaction(ctx, http.MethodDelete, channel, id, emoji), unknownMessage, unknownEmoji)
}

func (c *Client) reaction(ctx context.Context, method, channel, id, emoji string) error {
	return c.do(ctx, request{
		method: method, route: messages(channel) + "/reactions", safe: true,
		path: messages(channel) + "/" + id + "/reactions/" + url.PathEscape(emoji) + "/@me",
	}, nil)
}

// Typing shows the bot as typing for ten seconds. It is tried once.
func (c *Client) Typing(ctx context.Context, channel string) error {
	at := "/channels/" + channel + "/typing"
	return c.do(ctx, request{method: http.MethodPost, route: at, path: at, once: true}, nil)
}

// Message returns one message.
func (c *Client) Message(ctx context.Context, channel, id string) (*discordgo.Message, error) {
	return c.message(ctx, request{method: http.MethodGet, route: messages(channel), path: messages(channel) + "/" + id, safe: true})
}

// History returns the oldest messages after one, at most limit of them, oldest first. After "" they are the newest of all. limit
// is at most 100. One that cannot be read has only its id, so that it does not keep the others from being read.
func (c *Client) History(ctx context.Context, channel, after string, limit int) ([]*discordgo.Message, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if after != "" {
		query.Set("after", after)
	}
	var raw []json.RawMessage
	err := c.do(ctx, request{method: http.MethodGet, route: messages(channel), path: messages(channel) + "?" + query.Encode(), safe: true}, &raw)
	if err != nil {
		return nil, err
	}
	list := make([]*discordgo.Message, len(raw))
	for i := range raw {
		m, err := Decode[discordgo.Message](raw[i])
		if err != nil {
			id, err := Decode[struct{ ID string }](raw[i])
			if err != nil {
				return nil, unreadable(err)
			}
			m = discordgo.Message{ID: id.ID}
		}
		list[i] = &m
	}
	slices.Reverse(list)
	return list, nil
}

func messages(channel string) string { return "/channels/" + channel + "/messages" }

// message makes a request that is answered with a message.
func (c *Client) message(ctx context.Context, r request) (*discordgo.Message, error) {
	var raw json.RawMessage
	if err := c.do(ctx, r, &raw); err != nil {
		return nil, err
	}
	m, err := Decode[discordgo.Message](raw)
	if err != nil {
		return nil, unreadable(err)
	}
	return &m, nil
}

// maxNonce is the size of a nonce in characters.
const maxNonce = 24

func randomNonce() string { return rand.Text()[:maxNonce] }

// inRow is how many buttons a row has.
const inRow = 5

// rows returns buttons in rows, 25 at most. Without buttons it is an empty list, which removes those of an existing message.
func rows(list []outbox.Button) []discordgo.MessageComponent {
	rows := []discordgo.MessageComponent{}
	for list = list[:min(len(list), 25)]; len(list) > 0; {
		row := discordgo.ActionsRow{}
		for _, b := range list[:min(len(list), inRow)] {
			row.Components = append(row.Components, discordgo.Button{Label: b.Label, CustomID: b.ID, Style: style(b.Style), Disabled: b.Disabled})
		}
		rows, list = append(rows, row), list[len(row.Components):]
	}
	return rows
}

func style(name string) discordgo.ButtonStyle {
	if i := slices.Index(styles(), name); i > 0 {
		return discordgo.ButtonStyle(i)
	}
	return discordgo.SecondaryButton
}

// styles returns the names of the styles of buttons, each at Discord's number of it.
func styles() []string { return []string{"?", "primary", "", "success", "danger"} }

// ButtonsOf returns the buttons of a message's components.
func ButtonsOf(rows []discordgo.MessageComponent) []outbox.Button {
	list := []outbox.Button{}
	for _, row := range rows {
		if row, ok := row.(*discordgo.ActionsRow); ok {
			for _, c := range row.Components {
				if b, ok := c.(*discordgo.Button); ok && int(b.Style) < len(styles()) {
					list = append(list, outbox.Button{Label: b.Label, ID: b.CustomID, Style: styles()[b.Style], Disabled: b.Disabled})
				}
			}
		}
	}
	return list
}
