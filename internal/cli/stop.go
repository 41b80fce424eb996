package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
)

func newPause(d *deps) *cobra.Command {
	var all bool
	cmd := command(agentNever(refused), "pause [DURATION]", "Pause all automatic runs, for a time or until resume",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			var until time.Time
			if len(args) == 1 {
				pause, err := job.ParseDuration(args[0])
				if err != nil {
					return usage("%v", err)
				}
				if pause == 0 {
					return usage("%q is not a duration: write one like 30m, 2h or 1d", args[0])
				}
				until = d.Now().Add(pause).In(h.Config.Zone)
			}
			if all {
				return h.Spend.PauseAll(ctx, until)
			}
			return h.Spend.Pause(ctx, until)
		}))
	cmd.Flags().BoolVar(&all, "hold-reminders", false, "also hold plain reminders, which a pause lets through")
	return cmd
}

func newResume(d *deps) *cobra.Command {
	return command(agentNever(refused), "resume", "Resume automatic runs, and say what the pause held",
		inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error {
			held, err := h.Firer().Pauses.Held()
			if err != nil { // the error must not prevent the end of the pause
				d.warn(err.Error())
			}
			if err := h.Spend.Resume(ctx); err != nil {
				return err
			}
			if held != "" && !d.quiet {
				d.line("info", "the pause held "+held)
			}
			return nil
		}))
}

func newStop(d *deps) *cobra.Command {
	var all bool
	cmd := command(agentNever(refused), "stop RUN... | --all", "Stop running runs; they are recorded as interrupted",
		func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage("name RUNs, or --all")
			}
			return runStop(cmd.Context(), d, args)
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().BoolVar(&all, "all", false, "stop all running runs")
	return cmd
}

func runStop(ctx context.Context, d *deps, names []string) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		for r, err := range h.Runs.List() {
			if err != nil && r.ID == "" {
				return err
			}
			if err == nil && !r.Done() {
				names = append(names, r.ID)
			}
		}
	}
	return d.each("stop", names, func(name string) error {
		r, err := h.Runs.Find(name)
		if err == nil {
			err = h.Runs.Stop(ctx, r, d.Sleep)
		}
		return err
	})
}
