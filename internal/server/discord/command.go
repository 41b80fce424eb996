package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/outbox"
)

// Interactions answers what the owner does besides writing: commands, buttons, and questions about permissions. An answer that takes
// long is announced within the three seconds that Discord waits, and follows.
type Interactions struct {
	API    *api.Client
	Owns   func(user string) bool      // reports whether a user is the owner; nobody else is answered
	Runner func() (*run.Runner, error) // with the settings as they are now
	Now    func() time.Time
	Warn   func(message string)
	Look   time.Duration // how long completions may take; 0 is completeTime

	Ollim  func(ctx context.Context, words ...string) (string, error)      // runs a command line as the owner, and returns what it prints
	Launch func(words ...string) error                                     // starts a command line as a process that outlives this one
	Say    func(ctx context.Context, channel string, m turn.Message) error // lets the owner take a turn; it returns when m is queued

	permissions permissions
	working     sync.WaitGroup
}

// Interact begins to answer an interaction, and returns.
func (x *Interactions) Interact(ctx context.Context, i *discordgo.Interaction) {
	if !x.isOwner(i) {
		return
	}
	x.working.Go(func() {
		switch data := i.Data.(type) {
		case discordgo.ApplicationCommandInteractionData:
			if i.Type == discordgo.InteractionApplicationCommandAutocomplete {
				x.complete(ctx, i, data)
			} else {
				x.command(ctx, i, data)
			}
		case discordgo.MessageComponentInteractionData:
			x.press(ctx, i, data.CustomID)
		}
	})
}

// Wait waits for the answers that have begun. They are hurried by the end of the context that Interact was given.
func (x *Interactions) Wait() { x.working.Wait() }

func (x *Interactions) isOwner(i *discordgo.Interaction) bool {
	user := i.User
	if i.Member != nil {
		user = i.Member.User
	}
	return user != nil && x.Owns(user.ID)
}

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
	if err := x.API.Respond(ctx, i, later, api.Outgoing{Private: i.GuildID != ""}); err != nil {
		x.Warn("discord: /" + data.Name + ": " + err.Error()) // the owner sees that it was not carried out
		return
	}
	r := reply{text: "This version of ollim does not know this command: run `ollim discord sync`."}
	if c, known := commandOf(data.Name); known {
		var err error
		if r, err = c.run(x, ctx, arguments(data.Options)); err != nil {
			r = reply{text: "⚠️ " + escapeMarkdown(err.Error())}
		}
	}
	x.answer(ctx, i, begun, r)
}

// answer replaces the announcement of an answer by the answer.
func (x *Interactions) answer(ctx context.Context, i *discordgo.Interaction, begun time.Time, r reply) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	o := api.Outgoing{Text: r.text}
	if len(r.buttons) > 0 {
		o.Components = api.Buttons(r.buttons...)
	}
	for n, part := range api.Parts(i.ID, o) {
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
