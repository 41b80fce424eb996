package cli

import "github.com/spf13/cobra"

func newSchedule(d *Deps) *cobra.Command {
	return group("schedule", "schedules", "What fires when, what became of it, and the entries of cron and systemd",
		newScheduleList(d), newScheduleAudit(d),
		newSchedulePrint(d), newScheduleInstall(d), newScheduleDiff(d), newScheduleRemove(d), newScheduleFailed(d))
}
