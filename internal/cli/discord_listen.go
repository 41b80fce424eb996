package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/discord"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/discord/gateway"
	"github.com/ollim/ollim/internal/state/config"
)

func newDiscordListen(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "listen",
		Short:       "Answer messages to the bot on Discord, as a service",
		Long: "Listen stays connected to Discord and answers messages to the bot until it is stopped. Direct messages from the owner are " +
			"turns of the main conversation, or of the open fork, with their images and files. A reply to a message that a background run " +
			"sent opens a fork of that run's session; a reply to a question answers it. A message that arrives during a turn waits for its " +
			"end, or stops it with chat.busy: interrupt. Channels and users that discord.allow lists have sessions of their own, as with " +
			"ollim chat --channel. Nobody else is answered.\n\n" +
			"Each message is answered once. Messages that arrive while the listener is stopped or disconnected are answered when it is " +
			"back. On SIGTERM the listener waits up to a minute for the turn in progress. A turn that takes longer is cut off, and the " +
			"agent reads its message again in the next turn. The settings are read again for each message.\n\n" +
			"The unit ollim-discord@USER.service of the package, or of contrib/systemd, runs the listener under systemd, which restarts it if Discord acknowledges no " +
			"heartbeat for five minutes. One listener serves a data directory; a second one exits 75. Listen exits 78 if Discord does not " +
			"accept the token or an intent, and 69 if the bot may not send direct messages to the owner.",
		RunE: inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordListen(ctx, d, h) }),
	}
}

// listenGrace is how long turns in progress may take when the listener is stopped.
const listenGrace = time.Minute

func runDiscordListen(ctx context.Context, d *Deps, h app.Home) error {
	outlivePipe()
	o, err := d.listener(h)
	if err != nil {
		return err
	}
	return discord.Run(ctx, o)
}

// listener returns what a listener works with.
func (d *Deps) listener(h app.Home) (discord.Options, error) {
	client, err := h.Discord()
	if err != nil {
		return discord.Options{}, err
	}
	token, err := h.DiscordToken()
	if err != nil {
		return discord.Options{}, err
	}
	socket, _ := d.Lookup("NOTIFY_SOCKET")
	return discord.Options{
		Client:  client,
		Gateway: gateway.Options{Token: token, REST: client, Now: d.Now},
		Home:    d.discordHome, Warn: d.warn, Notify: process.Notifier(socket), Grace: listenGrace,
		Interact: d.interact(h, client),
	}, nil
}

// discordHome returns the data directory as the listener needs it, with the settings as they are now.
func (d *Deps) discordHome() (discord.Home, error) {
	h, err := d.Home()
	if err != nil {
		return discord.Home{}, err
	}
	return discord.Home{
		Dir: h.Dir, Disk: h.Disk, Runner: h.Runner(false),
		Owner: h.Config.Discord.Owner, Allow: h.Config.Discord.Allow,
		Transcribe: h.Config.Discord.Transcribe, Env: h.Post().Env,
		Interrupt: h.Config.Chat.Busy == config.BusyInterrupt,
	}, nil
}

// interact returns what answers the owner's commands and buttons.
func (d *Deps) interact(h app.Home, client *api.Client) *discord.Interactions {
	s := starter{d: d, home: h}
	return &discord.Interactions{
		API: client, Now: d.Now, Warn: d.warn, Launch: s.launch,
		Runner: func() (*runner.Runner, error) {
			h, err := d.Home()
			if err != nil {
				return nil, err
			}
			return h.Runner(false), nil
		},
		Ollim: func(ctx context.Context, words ...string) (string, error) { return d.typed(ctx, h, words) },
	}
}
