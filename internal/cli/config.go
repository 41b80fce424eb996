package cli

import (
	"context"
	"maps"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/config"
)

func newConfig(d *deps) *cobra.Command {
	return group("config", "Show and change settings",
		newList(d, agentNever(programs), "list", "List settings: key, value, origin", "KEY VALUE ORIGIN",
			func(context.Context) ([]config.Item, error) {
				c, err := d.Config()
				if err != nil {
					return nil, err
				}
				return c.Items(), nil
			}, func(i config.Item) []any { return []any{i.Key, prose(i.Text()), brief(i.Origin)} }),
		command(agentNever(programs), "get KEY", "Print the value of one setting", func(_ *cobra.Command, args []string) error {
			c, err := d.Config()
			if err != nil {
				return err
			}
			item, err := c.Get(args[0])
			if err != nil {
				return hint(err, "ollim config list")
			}
			return d.answer(item.Text(), nil)
		}), newConfigSet(d))
}

func newNames(d *deps) *cobra.Command {
	var user, bot string
	cmd := command(agentOwn("update_names"), "names [--user NAME] [--bot NAME]", "Show or set the names of the owner and the agent",
		inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runNames(ctx, d, h, user, bot) }))
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&user, "user", "", "name of the owner")
	cmd.Flags().StringVar(&bot, "bot", "", "name of the agent")
	return withJSON(d, cmd, "print one JSON object")
}

func runNames(ctx context.Context, d *deps, h app.Home, user, bot string) error {
	switch {
	case d.json && user+bot != "":
		return usage("--json only prints names")
	case d.json:
		return d.emit(h.Config.Names)
	case user == "" && bot == "":
		rows := [][]string{{"user", h.Config.Names.User}, {"bot", h.Config.Names.Bot}}
		return records(d, "", rows, cellsOf)
	case d.inside():
		input := map[string]string{"user_name": user, "bot_name": bot}
		maps.DeleteFunc(input, func(_, name string) bool { return name == "" })
		_, err := d.useTool(ctx, h, "update_names", input)
		return err
	}
	return h.SetNames(user, bot)
}
