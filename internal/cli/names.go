package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/config"
)

func newNames(d *Deps) *cobra.Command {
	var user, bot string
	cmd := &cobra.Command{
		Use:   "names [--user NAME] [--bot NAME]",
		Short: "Print, or set, what the owner and the agent call each other",
		Args:  checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			return runNames(cmd.Context(), d, user, bot)
		}),
	}
	cmd.Flags().StringVar(&user, "user", "", "what the agent calls its owner")
	cmd.Flags().StringVar(&bot, "bot", "", "what the agent is called")
	return cmd
}

func runNames(ctx context.Context, d *Deps, user, bot string) error {
	h, err := d.house()
	switch {
	case err != nil:
		return err
	case user == "" && bot == "":
		_, err := fmt.Fprintf(d.Out, "user\t%s\nbot\t%s\n", h.config.Names.User, h.config.Names.Bot)
		return err
	case d.isInside():
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
	return d.setNames(h, user, bot)
}

// setNames keeps names in config.yaml; "" leaves one as it is.
func (d *Deps) setNames(h house, user, bot string) error {
	for _, name := range []string{user, bot} { // both are good, or none is kept
		if err := config.CheckName(name); name != "" && err != nil {
			return usage("%v", err)
		}
	}
	var err error
	if user != "" {
		err = d.setConfig(context.Background(), h, "names.user", user)
	}
	if bot != "" && err == nil {
		err = d.setConfig(context.Background(), h, "names.bot", bot)
	}
	return err
}

// setConfig changes one setting of config.yaml.
func (d *Deps) setConfig(ctx context.Context, h house, key string, values ...string) error {
	held, err := h.disk.Lock(ctx, h.home.Lock("config"))
	if err != nil {
		return err
	}
	defer held.Release()
	err = config.Set(d.configFile(h.home), key, values)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", d.configFile(h.home), errNoConfig)
	}
	return err
}
