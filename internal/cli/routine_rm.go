package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/session"
)

func newRoutineRm(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "rm JOB...",
		Short:       "Delete routine files, and the sessions of persistent routines",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        inHome(d, func(ctx context.Context, h app.Home, args []string) error { return runRoutineRm(ctx, d, h, args) }),
	}
}

func runRoutineRm(ctx context.Context, d *Deps, h app.Home, names []string) error {
	s, err := h.Jobs().Load() // no warnings: the file to be deleted may be among the bad ones
	if err != nil {
		return err
	}
	return d.each("routine rm", names, func(name string) error {
		return removeRoutine(ctx, h, s, name)
	})
}

// removeRoutine keeps the session of a file that could not be read: its id is not known for certain.
func removeRoutine(ctx context.Context, h app.Home, s job.Set, name string) error {
	path, err := jobPath(s, h, job.Routine, name)
	if err != nil {
		return err
	}
	j, findErr := s.Find(name)
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
	if err := (notice.Book{Home: h.Dir, Disk: h.Disk}).Worked(ctx, j.ID); err != nil { // a new job of this id begins anew
		return err
	}
	return session.Book{Home: h.Dir, Disk: h.Disk, Zone: h.Config.Zone}.RemoveRoutine(j.ID)
}
