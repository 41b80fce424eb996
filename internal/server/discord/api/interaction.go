package api

import (
	"context"
	"net/http"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// callback is the first answer to an interaction.
type callback struct {
	Type discordgo.InteractionResponseType `json:"type"`
	Data any                               `json:"data,omitempty"`
}

// Respond gives the first answer to an interaction, within the three seconds that Discord waits. The kinds without a message, such
// as the deferred ones, take nothing from o. In a server only the user of the interaction sees a message.
func (c *Client) Respond(ctx context.Context, i *discordgo.Interaction, kind discordgo.InteractionResponseType, o messenger.Outgoing) error {
	answer := callback{Type: kind}
	switch kind {
	case discordgo.InteractionResponseUpdateMessage:
		answer.Data = bodyOf(o)
	case discordgo.InteractionResponseChannelMessageWithSource:
		answer.Data = private(i, o)
	case discordgo.InteractionResponseDeferredChannelMessageWithSource:
		if i.GuildID != "" {
			answer.Data = map[string]any{"flags": discordgo.MessageFlagsEphemeral}
		}
	default:
	}
	return c.answer(ctx, i, answer)
}

// private returns a message that only the user of an interaction sees, if that is in a server.
func private(i *discordgo.Interaction, o messenger.Outgoing) body {
	b := bodyOf(o)
	if i.GuildID != "" {
		b.Flags = discordgo.MessageFlagsEphemeral
	}
	return b
}

// Complete answers an interaction that asks for completions of an option; at most 25.
func (c *Client) Complete(ctx context.Context, i *discordgo.Interaction, choices []*discordgo.ApplicationCommandOptionChoice) error {
	if choices == nil {
		choices = []*discordgo.ApplicationCommandOptionChoice{}
	}
	return c.answer(ctx, i, callback{discordgo.InteractionApplicationCommandAutocompleteResult, map[string]any{"choices": choices}})
}

// answer sends the first answer. Where the first attempt was carried out although it failed, the next one finds that out.
func (c *Client) answer(ctx context.Context, i *discordgo.Interaction, answer callback) error {
	repeated := false
	err := c.do(ctx, request{
		method: http.MethodPost, path: "/interactions/" + i.ID + "/" + i.Token + "/callback", body: answer, safe: true, repeated: &repeated,
	}, nil)
	if repeated {
		err = ignore(err, acknowledged)
	}
	return err
}

// EditResponse changes the message of the first answer, or creates it after a deferred one.
func (c *Client) EditResponse(ctx context.Context, i *discordgo.Interaction, o messenger.Outgoing) (*discordgo.Message, error) {
	return c.message(ctx, request{method: http.MethodPatch, path: webhook(i) + "/messages/@original", body: bodyOf(o), files: o.Files, safe: true})
}

// FollowUp creates a further message after the first answer. Discord knows no nonce here: after a cut connection it is not tried
// again.
func (c *Client) FollowUp(ctx context.Context, i *discordgo.Interaction, o messenger.Outgoing) (*discordgo.Message, error) {
	return c.message(ctx, request{method: http.MethodPost, path: webhook(i), body: private(i, o), files: o.Files})
}

func webhook(i *discordgo.Interaction) string { return "/webhooks/" + i.AppID + "/" + i.Token }
