package cli

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/config"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/tick"
)

type tickOptions struct {
	dryRun bool
	json   bool
}

func newTick(d *Deps) *cobra.Command {
	var o tickOptions
	cmd := &cobra.Command{
		Use:   "tick",
		Short: "What one line in cron does each minute: start reminders that are due, send what is left, tidy up",
		Long: "Tick starts the reminders that are due, tries again what failed, tells of those that are more than a day late in one pending " +
			"update, ends runs whose process died, and sends messages that did not get through. It starts and exits, and waits for no engine. " +
			"Two at once do no harm.",
		Example: "  * * * * * ollim tick",
		Args:    checked(cobra.NoArgs),
		RunE:    works(func(cmd *cobra.Command, _ []string) error { return runTick(cmd.Context(), d, o) }),
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list the reminders that would be started (start) or told of (collect), and change nothing")
	cmd.Flags().BoolVar(&o.json, "json", false, "with --dry-run: one JSON object a line")
	return cmd
}

func runTick(ctx context.Context, d *Deps, o tickOptions) error {
	h, err := d.house()
	if err != nil {
		return err
	}
	if err := d.outside(); err != nil {
		return err
	}
	days, err := config.Days(h.config.Keep.Runs)
	if err != nil {
		return err
	}
	m := tick.Minute{
		Firer: d.firer(h), Keep: days,
		Start: func(j job.Job) error { return d.startFire(h, j) },
		Sweep: func(ctx context.Context) error { return sweepSessions(ctx, h) },
	}
	if !o.dryRun {
		return m.Pass(ctx)
	}
	plan, err := m.Plan(ctx)
	if err != nil {
		return err
	}
	return records(d, o.json, plan, func(a tick.Action) []string { return []string{a.Do, a.Job, clock(a.At), a.Name} })
}

// startFire starts a fire that goes on without us, whatever becomes of the session that cron or a terminal gave us.
func (d *Deps) startFire(h house, j job.Job) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "--data-dir", string(h.home), "--config", d.configFile(h.home), "fire", "--scheduled", "--", j.ID) //nolint:noctx // it outlives us
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
