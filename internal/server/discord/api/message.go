package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/state/outbox"
)

// Outgoing is a message to create, or what to change of one.
type Outgoing struct {
	Text       string                  // at most MaxText; "" leaves the text of an existing message
	Embed      *discordgo.MessageEmbed // nil leaves it
	Files      []file
	ReplyTo    string                       // id of a message of the same channel, which may be deleted meanwhile
	Silent     bool                         // without a notification
	Private    bool                         // only the user of the interaction sees it
	Components []discordgo.MessageComponent // nil leaves them, an empty list removes them
	Nonce      string                       // at most 25 characters; the same one again creates no second message. "": a random one
	Once       bool                         // the request waits for no rate limit and is not repeated
}

// file is a file to send along.
type file struct {
	Name string
	Type string // "" is application/octet-stream
	Data []byte
}

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

// body returns the message for a request that changes one; a creation adds more.
func (o Outgoing) body() body {
	b := body{Content: o.Text}
	if o.Embed != nil {
		b.Embeds = []*discordgo.MessageEmbed{o.Embed}
	}
	if o.Components != nil {
		b.Components = &o.Components
	}
	if o.Silent {
		b.Flags |= discordgo.MessageFlagsSuppressNotifications
	}
	if o.Private {
		b.Flags |= discordgo.MessageFlagsEphemeral
	}
	return b
}

// Send creates one message and returns it. A repetition with the same nonce returns the message that is there.
func (c *Client) Send(ctx context.Context, channel string, o Outgoing) (*discordgo.Message, error) {
	b := o.body()
	if o.ReplyTo != "" {
		b.Reference = &reference{Message: o.ReplyTo}
	}
	if b.Nonce, b.Enforce = o.Nonce, true; b.Nonce == "" {
		b.Nonce = randomNonce()
	}
	at := messages(channel)
	return c.message(ctx, request{method: http.MethodPost, route: at, path: at, body: b, files: o.Files, safe: true, once: o.Once})
}

// Edit changes one message.
func (c *Client) Edit(ctx context.Context, channel, id string, o Outgoing) (*discordgo.Message, error) {
	b := o.body()
	b.Flags = 0
	return c.message(ctx, request{method: http.MethodPatch, route: messages(channel), path: messages(channel) + "/" + id, body: b, files: o.Files, safe: true, once: o.Once})
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

// nonce returns the nonce of the n-th part of a message, the same one whenever it is asked.
func nonce(id string, n int) string {
	sum := sha256.Sum256([]byte(id + " " + strconv.Itoa(n)))
	return base32.StdEncoding.EncodeToString(sum[:])[:maxNonce]
}

func randomNonce() string { return rand.Text()[:maxNonce] }

// inRow is how many buttons a row has.
const inRow = 5

// Buttons returns rows of buttons, 25 at most. Without buttons it is an empty list, which removes those of an existing message.
func Buttons(list ...outbox.Button) []discordgo.MessageComponent {
	rows := []discordgo.MessageComponent{}
	for list = list[:min(len(list), 25)]; len(list) > 0; {
		row := discordgo.ActionsRow{}
		for _, b := range list[:min(len(list), inRow)] {
			row.Components = append(row.Components, discordgo.Button{Label: b.Label, CustomID: b.ID, Style: style(b.Style)})
		}
		rows, list = append(rows, row), list[len(row.Components):]
	}
	return rows
}

func style(name string) discordgo.ButtonStyle {
	switch name {
	case "primary":
		return discordgo.PrimaryButton
	case "success":
		return discordgo.SuccessButton
	case "danger":
		return discordgo.DangerButton
	}
	return discordgo.SecondaryButton
}
