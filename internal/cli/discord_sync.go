package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/server/discord"
	"github.com/ollim/ollim/internal/server/discord/api"
)

func newDiscordSync(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "sync",
		Short:       "Register the slash commands with Discord",
		Long: "Sync registers the slash commands, such as /status, that the owner can use in direct messages with the bot. It removes all " +
			"other commands of the application. The listener does the same when it starts, if the commands have changed; sync always does it.",
		RunE: inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runDiscordSync(ctx, d, h) }),
	}
}

// syncLimit bounds all requests of a sync.
const syncLimit = 30 * time.Second

func runDiscordSync(ctx context.Context, d *Deps, h app.Home) error {
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
			d.note("registered %d commands with application %s", n, application.Name)
		}
	}
	if errors.Is(err, api.ErrUnreachable) || api.Temporary(err) {
		return &withStatus{err, statusUnavailable}
	}
	return err
}
