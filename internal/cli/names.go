package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newNames(d *Deps) *cobra.Command {
	var user, bot string
	cmd := &cobra.Command{
		Annotations: agentOwn("update_names"),
		Use:         "names [--user NAME] [--bot NAME]",
		Short:       "Show or set the names of the owner and the agent",
		Args:        checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			return runNames(cmd.Context(), d, user, bot)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "name of the owner")
	cmd.Flags().StringVar(&bot, "bot", "", "name of the agent")
	return cmd
}

func runNames(ctx context.Context, d *Deps, user, bot string) error {
	h, err := d.Home()
	switch {
	case err != nil:
		return err
	case user == "" && bot == "":
		_, err := fmt.Fprintf(d.Out, "user\t%s\nbot\t%s\n", h.Config.Names.User, h.Config.Names.Bot)
		return err
	case d.inside():
		input := map[string]any{}
		if user != "" {
			input["user_name"] = user
		}
		if bot != "" {
			input["bot_name"] = bot
		}
		_, err := d.useTool(ctx, h, "update_names", input)
		return err
	}
	return h.SetNames(user, bot)
}
