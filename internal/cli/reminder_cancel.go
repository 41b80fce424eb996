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
		Short:       "Delete reminders that wait",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        works(func(cmd *cobra.Command, args []string) error { return runReminderCancel(cmd.Context(), d, args) }),
	}
}

func runReminderCancel(ctx context.Context, d *Deps, names []string) error {
	h, err := d.Home()
	if err != nil {
		return err
	}
	failed := failures{d: d, verb: "reminder cancel"}
	for _, name := range names {
		if d.inside() {
			_, err := d.useTool(ctx, h, "cancel_reminder", map[string]any{"id": name})
			failed.add(name, err)
			continue
		}
		failed.add(name, cancelReminder(h, name))
	}
	return failed.err()
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
