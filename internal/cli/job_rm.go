package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

func newJobRm(d *Deps, kind job.Kind, short string) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "rm JOB...",
		Short:       short,
		RunE: inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			s, err := h.Jobs().Load() // no warnings: the file to be deleted may be among the bad ones
			if err != nil {
				return err
			}
			return d.each(string(kind)+" rm", args, func(name string) error { return removeJob(ctx, d, h, s, kind, name) })
		}),
	}
}

// removeJob keeps the session of a file that could not be read: its id is not known for certain.
func removeJob(ctx context.Context, d *Deps, h app.Home, s job.Set, kind job.Kind, name string) error {
	path, err := jobPath(s, h, kind, name)
	if err != nil {
		return err
	}
	j, findErr := s.Only(kind).Find(name)
	if findErr == nil {
		guard, err := lock.TryGuard(h.Dir.JobLock(j.ID))
		if errors.Is(err, lock.ErrBusy) {
			return hint(errors.Join(errors.New("is running"), err), "try again when its run has ended: ollim run list")
		}
		if err != nil {
			return err
		}
		defer guard.Release()
	}
	if err := store.Remove(path); err != nil || findErr != nil {
		return err
	}
	if _, n, err := h.Inbox().First(j.ID); err == nil {
		d.warn(fmt.Sprintf("%s: accepted events that wait: %d: they do not run unless a file with this id is there again", j.ID, n))
	}
	if err := h.Notices().Worked(ctx, j.ID); err != nil { // a new job of this id begins anew
		return err
	}
	return h.Sessions().RemoveRoutine(j.ID)
}
