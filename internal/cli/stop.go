package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/process"
	"github.com/ollim/ollim/internal/run"
)

func newStop(d *Deps) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "stop RUN... | --all",
		Short: "End runs that are under way; they are recorded as interrupted",
		Long:  "Stop asks the process of each run to end, which stops its engine in order and keeps its session. An engine whose own ollim was killed is killed.",
		Args:  checked(cobra.ArbitraryArgs),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usage("name RUNs, or --all")
			}
			return runStop(cmd.Context(), d, args)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every run that is under way")
	return cmd
}

func runStop(ctx context.Context, d *Deps, names []string) error {
	if err := d.ownerHere(); err != nil {
		return err
	}
	h, err := d.anyHouse()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		for r, err := range h.runs().List() {
			if err != nil && r.ID == "" {
				return err
			}
			if err == nil && !r.Done() {
				names = append(names, r.ID)
			}
		}
	}
	failed := failures{d: d, verb: "stop"}
	for _, name := range names {
		r, err := h.runs().Find(name)
		if err == nil {
			err = d.stopRun(ctx, h, r)
		}
		failed.add(name, err)
	}
	return failed.err()
}

// stopPatience is how long a run may take for its stop: three steps of the engine's, and then some.
const stopPatience = 4 * grace

func (d *Deps) stopRun(ctx context.Context, h house, r run.Record) error {
	if r.Done() {
		return errors.New("has ended already")
	}
	mark := "OLLIM_RUN=" + r.ID
	owner := process.ID{PID: r.PID, Start: r.PIDStart}
	err := owner.Signal(syscall.SIGTERM)
	for waited := time.Duration(0); err == nil && owner.Alive(); waited += followEvery {
		if waited > stopPatience {
			return fmt.Errorf("process %d does not end", r.PID)
		}
		if err := d.Sleep(ctx, followEvery); err != nil {
			return err
		}
	}
	process.KillAll(mark)
	_, err = h.runs().Close(r.ID) // of an engine whose ollim was killed; else it is closed already
	return err
}
