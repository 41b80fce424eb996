package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

type chatOptions struct {
	text      string
	typed     string // the part of text that may name files
	files     []string
	model     string
	interrupt bool
	abandoned bool

	thinking    string
	permissions string
	permits     *permits // nil: nobody can be asked
}

func (o *chatOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.files, "file", "f", nil, "attach this file (repeatable)")
	f.StringVar(&o.model, "model", "", "use this model")
	f.BoolVar(&o.interrupt, "interrupt", false, "stop your turn in progress, and be answered before the messages that wait")
	f.StringVar(&o.thinking, "thinking", "", "how much the model thinks: off, adaptive, true or a number of tokens (default chat.thinking)")
	f.StringVar(&o.permissions, "permissions", "", "how to treat a tool use that no pattern allows: dontAsk, default or "+
		"acceptEdits (default chat.permissions)")
	f.BoolVar(&o.abandoned, "abandoned", false, "answer the messages whose senders have died")
	_ = f.MarkHidden("abandoned") // for tick
}

func newChat(d *deps) *cobra.Command {
	var o chatOptions
	var service, chat string
	cmd := command(agentNever(nested), "chat [TEXT...]", "Talk with the agent in the main conversation",
		func(cmd *cobra.Command, args []string) error {
			o.text = strings.Join(args, " ")
			if cmd.Flags().Changed("channel") || cmd.Flags().Changed("chat-id") { // even if they are empty
				return runChatChannel(cmd.Context(), d, o.text, o, service, chat)
			}
			o.typed = o.text
			return runChat(cmd.Context(), d, o)
		})
	o.flags(cmd.Flags())
	cmd.Flags().StringVar(&service, "channel", "", "take the turn in a chat of this `CHANNEL`, such as telegram")
	cmd.Flags().StringVar(&chat, "chat-id", "", "the `CHAT` of the channel")
	return cmd
}

func runChat(ctx context.Context, d *deps, o chatOptions) error {
	outlivePipe()
	if err := o.check("--"); err != nil {
		return err
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	if o.abandoned {
		return h.Turns(false).Queue.AnswerAbandoned(ctx, turn.Options{})
	}
	if isTerminal(d.In) {
		if o.text == "" {
			return d.chatOnTerminal(ctx, h, o)
		}
		o.permits = d.permitsOnTerminal()
	}
	var input string
	if o.text, input, err = d.said(h, o.text, func(t turn.Turns) engine.Plan { return t.ChatPlan(ctx, o.model) }); err != nil {
		return err
	}
	m, err := o.message(h)
	if err != nil {
		return err
	}
	return d.turn(h, o.model, func(t turn.Turns, options turn.Options) (runlog.Record, error) {
		o.apply(&options)
		options.Input, options.Queued = input, func(p queue.Place) { d.sayQueued(h, p) }
		return t.Queue.Chat(ctx, m, options)
	})
}

// said returns words as the message and piped input as its data; without words the piped input is the message. plan returns the plan for
// the answer.
func (d *deps) said(h app.Home, words string, plan func(turn.Turns) engine.Plan) (text, input string, err error) {
	if !isTerminal(d.In) {
		if input, err = d.readPiped(h, plan(h.Turns(d.atShell()))); err != nil {
			return "", "", err
		}
	}
	if text = words; text == "" {
		text, input = strings.TrimSpace(input), ""
	}
	if text == "" {
		err = usage("no message: give a TEXT, or pipe one in")
	}
	return text, input, err
}

// check checks the options. Errors name one as the owner writes it: after -- on the command line, after / in the prompt loop.
func (o *chatOptions) check(before string) error {
	if o.thinking != "" {
		thinking, err := model.ParseThinking(o.thinking)
		if err != nil {
			return usage("%sthinking: %v", before, err)
		}
		o.thinking = thinking
	}
	if o.permissions == "" {
		return nil
	}
	if err := policy.CheckMode(o.permissions); err != nil {
		return usage("%spermissions: %v", before, err)
	}
	return nil
}

func (o *chatOptions) apply(r *turn.Options) {
	r.Thinking, r.Permissions = o.thinking, policy.Mode(o.permissions)
	if o.permits != nil {
		r.Observe.Permit = o.permits.permit
	}
}

func (o *chatOptions) message(h app.Home) (turn.Message, error) {
	files, err := attachments(o.typed, o.files, h.Runner(true).Hides)
	return turn.Message{Text: o.text, Attachments: files, First: o.interrupt || h.Config.Chat.Busy == config.BusyInterrupt}, err
}

func (d *deps) sayQueued(h app.Home, p queue.Place) {
	if d.quiet {
		return
	}
	s := p.String()
	if r, err := h.Runs.Load(p.Running); err == nil {
		s += fmt.Sprintf("; run %s has been in progress since %s", r.ID, r.Started.Format("15:04:05"))
	}
	d.line("info", join("chat", s))
}

func runChatChannel(ctx context.Context, d *deps, text string, given chatOptions, service, chat string) error {
	outlivePipe()
	if service == "" || chat == "" {
		return usage("--channel and --chat-id belong together")
	}
	if given.interrupt || given.abandoned || given.thinking != "" || given.permissions != "" {
		return usage("--interrupt, --thinking and --permissions are for the main conversation: leave them out with --channel")
	}
	name, err := channel.NewName(service, chat)
	if err != nil {
		return err
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	text, input, err := d.said(h, text, func(t turn.Turns) engine.Plan { return t.PlanOf("", given.model) })
	if err != nil {
		return err
	}
	v := &voice{d: d, format: "text", stop: func(error) {}, shown: d.answerText(h.Config.Chat)} // the turn continues without a reader
	files, err := attachments("", given.files, nil)                                             // the text of other people names no files
	if err != nil {
		return err
	}
	message := turn.Message{Text: strings.ToValidUTF8(text, "\ufffd"), Attachments: files}
	r, err := h.Turns(false).ChatChannel(ctx, name, message, turn.Options{
		Model: given.model, Input: input, Observe: run.Observer{Event: v.hear, Text: v.delta()},
	})
	if r.ID == "" {
		return explain(err)
	}
	v.end(h, r, err)
	return errors.Join((&fireOptions{}).verdict(d, r, err), v.err)
}
