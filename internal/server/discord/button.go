package discord

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/session"
)

// The verbs of buttons that only this package makes.
const (
	buttonForkSave   = "fork_save"
	buttonForkReport = "fork_report"
	buttonForkExit   = "fork_exit"
	buttonClear      = "clear"
	buttonPermit     = "permit"
	buttonClose      = "close"
)

// forkButtons returns the buttons of a message about an interactive fork: its ways to end.
func forkButtons(f session.Fork) []outbox.Button {
	list := []outbox.Button{
		{Label: "Report", ID: outbox.ButtonID(buttonForkReport, f.ID), Style: "primary"},
		{Label: "Exit", ID: outbox.ButtonID(buttonForkExit, f.ID), Style: "danger"},
	}
	if f.Run != "" { // it cannot replace main
		return list
	}
	return append([]outbox.Button{{Label: "Save", ID: outbox.ButtonID(buttonForkSave, f.ID), Style: "success"}}, list...)
}

// button is what buttons of one verb do.
type button struct {
	confirm bool // it takes something away: it must be pressed twice within confirmTime
	alone   bool // the other buttons of its message can still be used after it
	do      func(*Interactions, context.Context, press) (said string, err error)
}

// press is one use of a button.
type press struct {
	id      string // of the button
	verb    string
	arg     string
	channel string
}

func buttons() map[string]button {
	end := withRunner((*Interactions).endFork)
	return map[string]button{
		outbox.ButtonAnswer:   {do: withRunner((*Interactions).answerQuestion)},
		outbox.ButtonAgent:    {do: withRunner((*Interactions).sayPrompt), alone: true},
		outbox.ButtonTaskDone: {do: taskCommand("done"), alone: true},
		outbox.ButtonTaskDel:  {do: taskCommand("rm"), alone: true, confirm: true},
		buttonForkSave:        {do: end},
		buttonForkReport:      {do: end},
		buttonForkExit:        {do: end, confirm: true},
		buttonClear:           {do: withRunner((*Interactions).clear), confirm: true},
		buttonPermit:          {do: (*Interactions).answerPermission},
		buttonClose:           {do: func(*Interactions, context.Context, press) (string, error) { return "", nil }},
	}
}

// stale is the error of a button that nothing can come of any more.
func stale(reason string) error { return &question.Closed{Reason: reason} }

// confirmTime is how long a press that takes something away waits for the second one.
const confirmTime = time.Minute

// armed returns the id of a button that takes something away when it is pressed within confirmTime.
func armed(id string, now time.Time) string { return id + ":" + strconv.FormatInt(now.Unix(), 10) }

// disarmed returns an id without what armed has added, and when that was.
func disarmed(id string) (bare string, at time.Time) {
	last := strings.LastIndexByte(id, ':')
	seconds, err := strconv.ParseInt(id[last+1:], 10, 64)
	if err != nil || strings.Count(id, ":") < 3 {
		return id, time.Time{}
	}
	return id[:last], time.Unix(seconds, 0)
}

// press does what a button says.
func (x *Interactions) press(ctx context.Context, i *discordgo.Interaction, id string) {
	begun := x.Now()
	p := press{id: id, channel: i.ChannelID}
	bare := id
	words := strings.SplitN(id, ":", 3)
	if len(words) != 3 || words[0] != "ollim" {
		return
	}
	p.verb = words[1]
	b, known := buttons()[p.verb]
	if b.confirm {
		var at time.Time
		if bare, at = disarmed(id); begun.Sub(at).Abs() > confirmTime {
			x.respond(ctx, i, discordgo.InteractionResponseUpdateMessage, api.Outgoing{Components: rearm(i, id, armed(bare, begun))})
			return
		}
	}
	p.arg = strings.SplitN(bare, ":", 3)[2]
	if !x.respond(ctx, i, discordgo.InteractionResponseDeferredMessageUpdate, api.Outgoing{}) {
		return
	}
	if !known {
		x.note(ctx, i, begun, "This version of ollim does not know this button.")
		return
	}
	said, err := b.do(x, ctx, p)
	if _, spent := errors.AsType[*question.Closed](err); spent || err == nil { // every later press would have the same error
		x.showUsed(ctx, i, begun, p, b, err == nil)
	}
	if err != nil {
		said = "⚠️ " + escapeMarkdown(err.Error())
	}
	if said != "" {
		x.note(ctx, i, begun, said)
	}
}

// respond is the first answer to an interaction. It reports whether that has arrived.
func (x *Interactions) respond(ctx context.Context, i *discordgo.Interaction, kind discordgo.InteractionResponseType, o api.Outgoing) bool {
	err := x.API.Respond(ctx, i, kind, o)
	if err != nil {
		x.Warn("discord: a button: " + err.Error())
	}
	return err == nil
}

// note tells the owner what came of a press.
func (x *Interactions) note(ctx context.Context, i *discordgo.Interaction, begun time.Time, text string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	o := api.Outgoing{Text: plaintext.Short(text, api.MaxText), Private: i.GuildID != ""}
	err := errors.ErrUnsupported
	if x.Now().Sub(begun) < responseTime {
		_, err = x.API.FollowUp(ctx, i, o)
	}
	if err != nil && i.GuildID == "" {
		_, err = x.API.Send(ctx, i.ChannelID, o)
	}
	if err != nil {
		x.Warn("discord: the answer to a button was not sent: " + err.Error())
	}
}

// showUsed lets the buttons of a message look used.
func (x *Interactions) showUsed(ctx context.Context, i *discordgo.Interaction, begun time.Time, p press, b button, done bool) {
	if i.Message == nil || p.verb == buttonPermit && done { // the message of a permission is changed where the answer is awaited
		return
	}
	rows := change(i.Message.Components, func(one *discordgo.Button) {
		pressed := one.CustomID == p.id
		one.Disabled = one.Disabled || pressed || !b.alone
		if pressed && done {
			one.Style = discordgo.SuccessButton
		}
	})
	if p.verb == buttonClose {
		rows = []discordgo.MessageComponent{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	var err error
	if x.Now().Sub(begun) < responseTime {
		_, err = x.API.EditResponse(ctx, i, api.Outgoing{Components: rows})
	} else {
		_, err = x.API.Edit(ctx, i.ChannelID, i.Message.ID, api.Outgoing{Components: rows})
	}
	if err != nil {
		x.Warn("discord: the message of a button was not changed: " + err.Error())
	}
}

// rearm returns the buttons of a message with one that asks to be pressed again.
func rearm(i *discordgo.Interaction, id, next string) []discordgo.MessageComponent {
	if i.Message == nil {
		return nil
	}
	return change(i.Message.Components, func(one *discordgo.Button) {
		if one.CustomID == id {
			const again = "Press again: "
			one.CustomID, one.Style = next, discordgo.DangerButton
			one.Label = plaintext.Short(again+strings.TrimPrefix(one.Label, again), maxLabel)
		}
	})
}

// maxLabel is the most characters of a label.
const maxLabel = 80

// change returns copies of rows in which each button was changed.
func change(rows []discordgo.MessageComponent, edit func(*discordgo.Button)) []discordgo.MessageComponent {
	changed := []discordgo.MessageComponent{}
	for _, row := range rows {
		old, isRow := row.(*discordgo.ActionsRow)
		if !isRow {
			changed = append(changed, row)
			continue
		}
		next := discordgo.ActionsRow{}
		for _, c := range old.Components {
			if one, isButton := c.(*discordgo.Button); isButton {
				copied := *one
				edit(&copied)
				c = copied
			}
			next.Components = append(next.Components, c)
		}
		changed = append(changed, next)
	}
	return changed
}

// answerQuestion is a choice of a question that a run has asked.
func (x *Interactions) answerQuestion(ctx context.Context, r *run.Runner, p press) (string, error) {
	run, choice, _ := strings.Cut(p.arg, ":")
	if _, err := fire.New(r).Answers.Give(ctx, run, choice); err != nil {
		return "", err
	}
	if paused, _, err := r.Spend.Paused(); paused {
		return "The answer is saved. The run continues after `ollim resume`.", err
	}
	return "", x.Launch("answer", "--continue", "--", run)
}

// sayPrompt lets a button say its prompt in the conversation, once.
func (x *Interactions) sayPrompt(ctx context.Context, r *run.Runner, p press) (string, error) {
	text, err := r.Questions.UsePrompt(ctx, p.arg)
	if err != nil {
		return "", err
	}
	if err = x.Say(ctx, p.channel, turn.Message{Tag: "button", Text: text}); err != nil {
		return "", errors.Join(err, r.Questions.ReturnPrompt(context.WithoutCancel(ctx), p.arg))
	}
	return "-# The button says: " + inSpan(text), nil // the owner has seen only its label
}

func taskCommand(verb string) func(*Interactions, context.Context, press) (string, error) {
	return func(x *Interactions, ctx context.Context, p press) (string, error) {
		_, err := x.Ollim(ctx, "task", verb, "--", p.arg)
		return "", err
	}
}

func (x *Interactions) clear(ctx context.Context, r *run.Runner, p press) (string, error) {
	main, err := r.Sessions.Main()
	switch {
	case err != nil:
		return "", err
	case main != p.arg:
		return "", stale("this conversation has ended already")
	}
	x.permissions.forget()
	return "Your next message begins a new conversation.", turn.New(r).Clear(ctx)
}
