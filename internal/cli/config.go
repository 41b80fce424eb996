package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/config"
)

func newConfig(d *Deps) *cobra.Command {
	return group("config", "configs", "Show and change settings",
		newConfigList(d), newConfigGet(d), newConfigSet(d))
}

func newConfigList(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "list",
		Short:       "List settings: key, value, origin",
		Args:        checked(cobra.NoArgs),
		RunE: works(func(*cobra.Command, []string) error {
			c, err := d.Config()
			if err != nil {
				return err
			}
			return records(d, asJSON, c.Items(), func(i config.Item) []string { return []string{i.Key, i.Text(), i.Origin} })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func newConfigGet(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "get KEY",
		Short:       "Print the value of one setting",
		Args:        checked(cobra.ExactArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			c, err := d.Config()
			if err != nil {
				return err
			}
			item, err := c.Get(args[0])
			if err != nil {
				return hint(err, "ollim config list")
			}
			_, err = fmt.Fprintln(d.Out, item.Text())
			return err
		}),
	}
}

func newConfigSet(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "set KEY VALUE...",
		Short:       "Change one setting in config.yaml and keep the rest; several values make a list",
		Example:     `  ollim config set delivery.command sh -c 'mail -s "$OLLIM_LABEL" me'`,
		Args:        checked(cobra.MinimumNArgs(2)),
		RunE: inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return h.Set(ctx, args[0], withoutDashes(args[1:])...)
		}),
	}
	cmd.Flags().SetInterspersed(false) // a value may look like a flag: sh -c …
	return cmd
}

// withoutDashes drops the -- that ends flags.
func withoutDashes(values []string) []string {
	if len(values) > 1 && values[0] == "--" {
		return values[1:]
	}
	return values
}
