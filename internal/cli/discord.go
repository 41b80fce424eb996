package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/doctor"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/discord"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener"
	"github.com/ollim/ollim/internal/state/config"
)

func newDiscord(d *deps) *cobra.Command {
	return group("discord", "Connect the agent to Discord",
		command(agentNever(nested), "listen", "Answer messages to the bot on Discord, as a service",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordListen(ctx, d, h) })),
		withJSON(d, command(agentNever(refused), "check", "Check the connection with Discord, and say what to fix",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordCheck(ctx, d, h) })), jsonLines),
		command(agentNever(refused), "sync", "Register the slash commands with Discord",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordSync(ctx, d, h) })),
	)
}

func runDiscordCheck(ctx context.Context, d *deps, h app.Home) error {
	found := doctor.Doctor{App: d.App}.Discord(ctx, h)
	for i, f := range found {
		found[i].Text, found[i].Remedy = join(f.Text, f.Remedy), ""
	}
	return findings(d, "RESULT CHECK FINDING", found, checkStatus)
}

// checkStatus returns the exit status for the error of a check: statusUnavailable if it may work later.
func checkStatus(err error) status {
	if api.Unavailable(err) {
		return statusUnavailable
	}
	return statusOf(err)
}

const syncLimit = 30 * time.Second

func runDiscordSync(ctx context.Context, d *deps, h app.Home) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	client, err := h.Discord()
	if err != nil {
		return err
	}
	application, err := client.Application(ctx)
	if err == nil {
		var n int
		n, err = discord.SyncCommands(ctx, client, h.Dir, h.Disk, application.ID, true)
		if err == nil {
			d.note("registered %s with application %s", plaintext.Count(n, "command"), application.Name)
		}
	}
	if err != nil {
		err = &withStatus{err, checkStatus(err)}
	}
	return err
}

// typed runs a command line in this process as if the owner had typed it, and returns what it prints.
func (d *deps) typed(ctx context.Context, words []string) (string, error) {
	out, errOut, end := d.beside(ctx, "", aligned, words)
	if end != int(statusOK) {
		return "", errors.New(strings.TrimSpace(errOut))
	}
	return out + errOut, nil
}

// listenGrace is how long turns in progress may take when the listener is stopped.
const listenGrace = time.Minute

func runDiscordListen(ctx context.Context, d *deps, h app.Home) error {
	outlivePipe()
	o, err := d.listener(h)
	if err != nil {
		return err
	}
	return discord.Run(ctx, o)
}

func (d *deps) listener(h app.Home) (discord.Options, error) {
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
		Client: client, Token: token,
		Options: listener.Options{
			Actions: d.actions(h, "discord"), Home: d.discordHome, Notify: process.Notifier(socket), Grace: listenGrace, Free: d.Free,
		},
	}, nil
}

// discordHome returns the data directory as the listener needs it, with the settings as they are now.
func (d *deps) discordHome() (listener.Home, error) {
	h, err := d.Home()
	if err != nil {
		return listener.Home{}, err
	}
	return listener.Home{
		Dir: h.Dir, Disk: h.Disk, Runner: h.Runner(false),
		Owner: h.Config.Discord.Owner, Allow: h.Config.Discord.Allow,
		Transcribe: h.Config.Discord.Transcribe, Env: h.Post().Env,
		Interrupt: h.Config.Chat.Busy == config.BusyInterrupt,
	}, nil
}

func (d *deps) actions(h app.Home, messenger string) *listener.Actions {
	s := starter{d: d, home: h}
	return &listener.Actions{
		Name: messenger, Now: d.Now, Warn: d.warn, Launch: s.launch,
		Runner: func() (*run.Runner, error) {
			h, err := d.Home()
			if err != nil {
				return nil, err
			}
			return h.Runner(false), nil
		},
		Ollim: func(ctx context.Context, words ...string) (string, error) { return d.typed(ctx, words) },
	}
}
