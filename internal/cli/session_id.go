package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
)

func newSessionID(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "id SESSION",
		Short:       "Print the full id of a session",
		Args:        checked(cobra.ExactArgs(1)),
		RunE: inHome(d, func(_ context.Context, h app.Home, args []string) error {
			c, err := h.Conversation(args[0])
			if err != nil {
				return about(args[0], err)
			}
			_, err = fmt.Fprintln(d.Out, c.ID)
			return err
		}),
	}
}
