package cli

import (
	"github.com/spf13/cobra"
)

func newReminder(d *Deps) *cobra.Command {
	return group("reminder", "reminders", "Reminders: jobs that run once, at their time",
		newReminderList(d), newReminderShow(d), newReminderAdd(d), newReminderCancel(d), newReminderFollowUp(d))
}
