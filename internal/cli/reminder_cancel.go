package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

func newReminderCancel(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentOwn("cancel_reminder"),
		Use:         "cancel REMINDER...",
		Short:       "Delete pending reminders",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        inHome(d, func(ctx context.Context, h app.Home, args []string) error { return runReminderCancel(ctx, d, h, args) }),
	}
}

func runReminderCancel(ctx context.Context, d *Deps, h app.Home, names []string) error {
	return d.each("reminder cancel", names, func(name string) error {
		if d.inside() {
			_, err := d.useTool(ctx, h, "cancel_reminder", map[string]any{"id": name})
			return err
		}
		return cancelReminder(h, name)
	})
}

// cancelReminder deletes the file that is meant, whether or not it can be read, and whether it waits for its first attempt or for
// another.
func cancelReminder(h app.Home, name string) error {
	s, err := h.Jobs().Load()
	if err != nil {
		return err
	}
	s = s.Only(job.Reminder)
	path, err := jobPath(s, h, job.Reminder, name)
	if err != nil {
		return err
	}
	j, err := s.Find(name)
	if err != nil {
		return store.Remove(path)
	}
	guard, err := lock.TryGuard(h.Dir.JobLock(j.ID))
	if errors.Is(err, lock.ErrBusy) {
		return hint(&withStatus{errors.New("is running"), statusTempFail}, "ollim stop %s", j.ID)
	}
	if err != nil {
		return err
	}
	defer guard.Release()
	if !exists(path) {
		return &job.Unknown{Name: name} // its run has just ended
	}
	return store.Remove(path)
}
