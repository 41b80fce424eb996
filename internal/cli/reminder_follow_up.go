package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/timeparse"
)

func newReminderFollowUp(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentOwn("follow_up_chain"),
		Use:         "follow-up DELAY",
		Short:       "Inside a run of a chain reminder: have it come back after DELAY, such as 30m",
		Args:        checked(cobra.ExactArgs(1)),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			h, err := d.Home()
			if err != nil {
				return err
			}
			if !d.inside() {
				return hint(fmt.Errorf("%w: this is not inside a run", app.ErrNotAllowed), "ollim reminder add --in %s", args[0])
			}
			delay, err := timeparse.Delay(args[0])
			if err != nil {
				return usage("%v", err)
			}
			text, err := d.useTool(cmd.Context(), h, "follow_up_chain", map[string]any{"minutes_from_now": int(delay / time.Minute)})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(d.Out, text)
			return err
		}),
	}
}
