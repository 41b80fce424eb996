package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Interactions answers what the owner does besides writing: commands, buttons, and questions about permissions. An answer that takes
// long is announced within the three seconds that Discord waits, and follows.
type Interactions struct {
	*listener.Actions

	API  *api.Client
	Look time.Duration // how long completions may take; 0 is completeTime
}

// Interact begins to answer an interaction, and returns. The end of ctx hurries the answer.
func (x *Interactions) Interact(ctx context.Context, i *discordgo.Interaction) {
	if !x.isOwner(i) {
		return
	}
	x.Go(func() {
		switch data := i.Data.(type) {
		case discordgo.ApplicationCommandInteractionData:
			if i.Type == discordgo.InteractionApplicationCommandAutocomplete {
				x.complete(ctx, i, data)
			} else {
				x.command(ctx, i, data)
			}
		case discordgo.MessageComponentInteractionData:
			x.Press(ctx, i.ChannelID, data.CustomID, &pressed{x: x, i: i, begun: x.Now()})
		}
	})
}

func (x *Interactions) isOwner(i *discordgo.Interaction) bool {
	user := i.User
	if i.Member != nil {
		user = i.Member.User
	}
	return user != nil && x.Owns(user.ID)
}

// React answers a question by a reaction to it. It ignores any other reaction.
func (x *Interactions) React(r *discordgo.MessageReaction) {
	x.Actions.React(r.UserID, r.MessageID, r.Emoji.Name)
}

// pressed is a use of a button.
type pressed struct {
	x     *Interactions
	i     *discordgo.Interaction
	begun time.Time
	taken bool
}

// Buttons returns those of the message.
func (p *pressed) Buttons() []outbox.Button {
	if p.i.Message == nil {
		return nil
	}
	return api.ButtonsOf(p.i.Message.Components)
}

// Take acknowledges the press.
func (p *pressed) Take(ctx context.Context) error {
	p.taken = true
	return p.x.API.Respond(ctx, p.i, discordgo.InteractionResponseDeferredMessageUpdate, messenger.Outgoing{})
}

// Show changes the buttons of the message.
func (p *pressed) Show(ctx context.Context, list []outbox.Button) error {
	o := messenger.Outgoing{Buttons: list}
	switch {
	case !p.taken:
		return p.x.API.Respond(ctx, p.i, discordgo.InteractionResponseUpdateMessage, o)
	case p.answerable():
		_, err := p.x.API.EditResponse(ctx, p.i, o)
		return err
	}
	return p.x.API.Edit(ctx, p.i.ChannelID, p.i.Message.ID, o)
}

// Say sends a text, which only the owner sees in a server.
func (p *pressed) Say(ctx context.Context, text string) error {
	o, err := messenger.Outgoing{Text: text}, errors.ErrUnsupported
	if p.answerable() {
		_, err = p.x.API.FollowUp(ctx, p.i, o)
	}
	if err != nil && p.i.GuildID == "" {
		_, err = p.x.API.Send(ctx, p.i.ChannelID, o)
	}
	return err
}

// answerable reports whether Discord still takes answers to the interaction.
func (p *pressed) answerable() bool { return p.x.Now().Sub(p.begun) < responseTime }

// reply is the answer to a command.
type reply struct {
	text    string
	buttons []outbox.Button
}

const (
	// responseTime is how long the answer to an interaction can be changed; Discord takes 15 minutes.
	responseTime = 14 * time.Minute
	// sendTime bounds the requests of an answer, which is sent although the listener is about to end.
	sendTime = 30 * time.Second
)

// command carries out a command and answers it.
func (x *Interactions) command(ctx context.Context, i *discordgo.Interaction, data discordgo.ApplicationCommandInteractionData) {
	begun := x.Now()
	later := discordgo.InteractionResponseDeferredChannelMessageWithSource
	if err := x.API.Respond(ctx, i, later, messenger.Outgoing{}); err != nil {
		x.Warn("discord: /" + data.Name + ": " + err.Error()) // the owner sees that it was not carried out
		return
	}
	r := reply{text: "This version of ollim does not know this command: run `ollim discord sync`."}
	if c, known := commandOf(data.Name); known {
		var err error
		if r, err = c.run(x, ctx, arguments(data.Options)); err != nil {
			r = reply{text: "⚠️ " + api.Escape(err.Error())}
		}
	}
	x.answer(ctx, i, begun, r)
}

// answer replaces the announcement of an answer by the answer.
func (x *Interactions) answer(ctx context.Context, i *discordgo.Interaction, begun time.Time, r reply) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	for n, part := range messenger.Parts(i.ID, messenger.Outgoing{Text: r.text, Buttons: r.buttons}, x.API.Able()) {
		err := errors.ErrUnsupported
		if n == 0 && x.Now().Sub(begun) < responseTime {
			_, err = x.API.EditResponse(ctx, i, part)
		}
		if err != nil { // the interaction is over
			_, err = x.API.Send(ctx, i.ChannelID, part)
		}
		if err != nil {
			x.Warn("discord: the answer to a command was not sent: " + err.Error())
			return
		}
	}
}

// call is the arguments that were given to a command.
type call map[string]string

func arguments(options []*discordgo.ApplicationCommandInteractionDataOption) call {
	args := call{}
	for _, o := range options {
		args[o.Name] = fmt.Sprint(o.Value)
	}
	return args
}

// completeTime is how long completions may take, of the three seconds that Discord waits.
const completeTime = 2 * time.Second

// complete answers with completions of the option that the owner types.
func (x *Interactions) complete(ctx context.Context, i *discordgo.Interaction, data discordgo.ApplicationCommandInteractionData) {
	looking, cancel := context.WithTimeout(ctx, cmp.Or(x.Look, completeTime))
	defer cancel()
	var list []*discordgo.ApplicationCommandOptionChoice
	if c, known := commandOf(data.Name); known && c.complete != nil {
		for _, o := range data.Options {
			if o.Focused {
				list = completions(c.complete(x, looking), fmt.Sprint(o.Value))
			}
		}
	}
	if err := x.API.Complete(ctx, i, list); err != nil { // an empty list, too, if there was no time for more
		x.Warn("discord: completions of /" + data.Name + ": " + err.Error())
	}
}
