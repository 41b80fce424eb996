package cli

import "github.com/spf13/cobra"

func newSchedule(d *Deps) *cobra.Command {
	return group("schedule", "schedules", "Show future and past fires, and install entries for cron or systemd",
		newScheduleList(d), newScheduleAudit(d),
		newSchedulePrint(d), newScheduleInstall(d), newScheduleDiff(d), newScheduleRemove(d), newScheduleFailed(d))
}
