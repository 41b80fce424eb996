package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/job"
)

func newReminder(d *Deps) *cobra.Command {
	return group("reminder", "reminders", "Reminders: jobs that run once, at their time",
		newReminderList(d), newReminderShow(d), newReminderAdd(d), newReminderCancel(d), newReminderFollowUp(d))
}

// reminderPath is the file of the reminder that name means, also of one that cannot be read.
func reminderPath(s job.Shelf, h house, name string) (string, error) {
	path, err := routinePath(s, h, name)
	var unknown *job.Unknown
	if errors.As(err, &unknown) && unknown.Bad == 0 && len(unknown.Near) == 0 {
		err = hint(err, "ollim reminder list")
	}
	return path, err
}
