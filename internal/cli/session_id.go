package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newSessionID(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "id SESSION",
		Short:       "Print the id of a session, in full",
		Args:        checked(cobra.ExactArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			h, err := d.Home()
			if err != nil {
				return err
			}
			c, err := h.Conversation(args[0])
			if err != nil {
				return about(args[0], err)
			}
			_, err = fmt.Fprintln(d.Out, c.ID)
			return err
		}),
	}
}
