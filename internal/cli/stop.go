package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newPause(d *deps) *cobra.Command {
	return command(agentNever(refused), "pause [DURATION]", "Pause all automatic runs, for a time or until resume",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			var until time.Time
			if len(args) == 1 {
				pause, err := job.ParseDuration(args[0])
				if err != nil || pause == 0 {
					return usage("%q is not a duration: write one like 30m, 2h or 1d", args[0])
				}
				until = d.Now().Add(pause).In(h.Config.Zone)
			}
			return h.Spend.Pause(ctx, until)
		}))
}

func newResume(d *deps) *cobra.Command {
	return command(agentNever(refused), "resume", "Resume automatic runs",
		inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error { return h.Spend.Resume(ctx) }))
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
			err = d.stopRun(ctx, h, r)
		}
		return err
	})
}

// stopPatience is how long a run may take for its stop: three steps of the engine's, and then some.
const stopPatience = 4 * app.Grace

func (d *deps) stopRun(ctx context.Context, h app.Home, r runlog.Record) error {
	if r.Outcome == runlog.Waiting {
		return errors.New("is not in progress: it waits for an answer")
	}
	if r.Done() {
		return errors.New("has already ended")
	}
	if err := h.Runs.AskStop(r.ID, "stopped by ollim stop"); err != nil {
		return err
	}
	listened := len(r.Answers) > 0 // its process may be a listener, which goes on after the run
	if !listened {
		err := r.Process().Signal(syscall.SIGTERM) // it would find the request as well, within a second
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	attended := func() bool {
		if now, err := h.Runs.Load(r.ID); listened && err == nil {
			r = now
		}
		return !r.Done() && h.Runs.Attended(r)
	}
	if err := d.waitWhile(ctx, attended); err != nil {
		return fmt.Errorf("process %d%s does not end: %w", r.PID, elsewhere(r), err)
	}
	runlog.KillEngine(r.ID)
	if err := d.waitWhile(ctx, func() bool { return h.Runs.Alive(r) }); err != nil {
		return fmt.Errorf("its engine%s does not end: %w", elsewhere(r), err)
	}
	_, err := h.Runs.Close(r.ID)
	if err == nil { // of an engine whose ollim was killed; else it is closed already
		err = h.Runs.ForgetStop(r.ID)
	}
	if left := h.Runs.Leftover(h.Dir.RunLock(r.ID)); err == nil && left != nil {
		return left
	}
	return err
}

func (d *deps) waitWhile(ctx context.Context, so func() bool) error {
	for waited := time.Duration(0); so(); waited += followEvery {
		if waited > stopPatience {
			return fmt.Errorf("still running after %s", stopPatience)
		}
		if err := d.Sleep(ctx, followEvery); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere describes a process that cannot be signalled from here; "" for one that can.
func elsewhere(r runlog.Record) string {
	if r.Process().Foreign() {
		return ", in another PID namespace or of another boot,"
	}
	return ""
}
