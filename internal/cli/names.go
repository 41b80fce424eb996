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
		Short:       "Print, or set, what the owner and the agent call each other",
		Args:        checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			return runNames(cmd.Context(), d, user, bot)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "what the agent calls its owner")
	cmd.Flags().StringVar(&bot, "bot", "", "what the agent is called")
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
