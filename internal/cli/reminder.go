package cli

import (
	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
)

func newReminder(d *Deps) *cobra.Command {
	return group("reminder", "reminders", "Manage reminders: jobs that run once",
		newReminderList(d), newJobShow(d, job.Reminder), newReminderAdd(d), newReminderCancel(d), newReminderFollowUp(d))
}

// running reports whether a fire of the job is in progress.
func running(h app.Home, j job.Job) bool { return !lock.Free(h.Dir.JobLock(j.ID)) }
