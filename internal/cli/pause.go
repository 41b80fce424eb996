package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
)

func newPause(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "pause [DURATION]",
		Short:       "Pause all automatic runs, for a time or until resume",
		Long: "While paused, a fire is recorded as paused and exits 75, and its slot does not run later. ask, chat and " +
			"session compact are paused too if cron or a systemd timer starts them. Commands that you type still run.",
		Example: "  ollim pause 2h",
		Args:    checked(cobra.MaximumNArgs(1)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			var until time.Time
			if len(args) == 1 {
				pause, err := job.ParseDuration(args[0])
				if err != nil || pause == 0 {
					return usage("%q is not a duration: write one like 30m, 2h or 1d", args[0])
				}
				until = d.Now().Add(pause).In(h.Config.Zone)
			}
			return h.Spend().Pause(ctx, until)
		}),
	}
}

func newResume(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "resume",
		Short:       "Resume automatic runs",
		Args:        checked(cobra.NoArgs),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error {
			return h.Spend().Resume(ctx)
		}),
	}
}
