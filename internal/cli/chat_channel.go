package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/channel"
)

// channelHelp is the part of the help of chat about channels.
const channelHelp = "With --channel and --chat-id the turn belongs to a chat of a channel, such as a chat service to which a script " +
	"connects ollim. Each chat is a conversation of its own. The first message creates its session; its newest 50 messages are the " +
	"context of the next turn. The system prompt is CHANNEL.md in the data directory. The turn has no profile files, and only the " +
	"tools that channels.allowed-tools in config.yaml lists. For spending limits and ollim pause it is an automatic run. It waits " +
	"for a turn in progress in the same chat. If the session cannot be saved, the answer is printed and the exit status is 74. An " +
	"@FILE in TEXT stays plain text."

type channelOptions struct{ channel, chatID string }

func (o *channelOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.channel, "channel", "", "take the turn in a chat of this `CHANNEL`, such as telegram")
	f.StringVar(&o.chatID, "chat-id", "", "the `CHAT` of the channel")
}

// given reports whether the command line names a channel or a chat, also an empty one.
func (*channelOptions) given(f *pflag.FlagSet) bool {
	return f.Changed("channel") || f.Changed("chat-id")
}

func runChatChannel(ctx context.Context, d *Deps, text string, given chatOptions, o channelOptions) error {
	outlivePipe()
	if o.channel == "" || o.chatID == "" {
		return usage("--channel and --chat-id belong together")
	}
	if given.interrupt || given.abandoned || given.thinking != "" || given.permissions != "" {
		return usage("--interrupt, --thinking and --permissions are for the main conversation: leave them out with --channel")
	}
	name, err := channel.NewName(o.channel, o.chatID)
	if err != nil {
		return err
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	text, input, err := d.said(h, text, func(r *runner.Runner) engine.Plan { return r.PlanOf("", given.model) })
	if err != nil {
		return err
	}
	v := &voice{d: d, format: "text", stop: func(error) {}} // the turn goes on without a listener
	files, err := attachments("", given.files, nil)         // the text may be from other people
	if err != nil {
		return err
	}
	message := runner.Message{Text: strings.ToValidUTF8(text, "\ufffd"), Attachments: files}
	r, err := h.Runner(false).ChatChannel(ctx, name, message, runner.Options{
		Model: given.model, Input: input, Observe: runner.Observer{Event: v.hear, Text: v.delta()},
	})
	if r.ID == "" {
		return explain(err)
	}
	v.end(h, r, err)
	return errors.Join((&fireOptions{}).verdict(d, r, err), v.err)
}
