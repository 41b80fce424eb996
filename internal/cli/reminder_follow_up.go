package cli

import (
	"context"
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
		Short:       "Inside the run of a chained reminder: run it again after DELAY, such as 30m",
		Args:        checked(cobra.ExactArgs(1)),
		RunE: inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			if !d.inside() {
				return hint(fmt.Errorf("%w: not inside a run", app.ErrNotAllowed), "ollim reminder add --in %s", args[0])
			}
			delay, err := timeparse.Delay(args[0])
			if err != nil {
				return usage("%v", err)
			}
			text, err := d.useTool(ctx, h, "follow_up_chain", map[string]any{"minutes_from_now": int(delay / time.Minute)})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(d.Out, text)
			return err
		}),
	}
}
