package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/schedule"
)

func newSchedule(d *Deps) *cobra.Command {
	return group("schedule", "schedules", "What fires when", newScheduleList(d))
}

type scheduleListOptions struct {
	job  string
	n    int
	now  string
	json bool
}

func (o *scheduleListOptions) flags(f *pflag.FlagSet) {
	f.IntVarP(&o.n, "number", "n", 10, "how many fires to list")
	f.StringVar(&o.now, "now", "", "list what comes after this time, RFC 3339, instead of now")
	f.BoolVar(&o.json, "json", false, "one JSON object a line, with job and at")
}

func newScheduleList(d *Deps) *cobra.Command {
	var o scheduleListOptions
	cmd := &cobra.Command{
		Use:     "list [JOB]",
		Short:   "List the fires to come: id, name, time, description",
		Example: "  ollim schedule list -n 3\n  ollim schedule list daily-market --json --now 2026-03-07T09:00:00Z",
		Args:    checked(cobra.MaximumNArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.job = args[0]
			}
			return runScheduleList(d, o)
		}),
	}
	o.flags(cmd.Flags())
	return cmd
}

// fireRow is a fire to come as listings show it.
type fireRow struct {
	Job         string    `json:"job"`
	At          time.Time `json:"at"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
}

func (r fireRow) cells() []string { return []string{r.Job, r.Name, clock(r.At), r.Description} }

func runScheduleList(d *Deps, o scheduleListOptions) error {
	if o.n < 1 {
		return usage("-n %d: want 1 or more", o.n)
	}
	s, h, err := d.shelf(o.job)
	if err != nil {
		return err
	}
	now := d.Now()
	if o.now != "" {
		if now, err = parseTime(o.now, h.config.Zone); err != nil {
			return err
		}
	}
	jobs := s.Jobs
	if o.job != "" {
		j, err := s.Find(o.job)
		if err != nil {
			return explain(err)
		}
		jobs = []job.Job{j}
	}
	for _, j := range jobs {
		if j.Kind == job.Routine && j.Enabled && j.Schedule.Never() {
			d.warn(j.Path + ": cron: " + j.Cron + " never fires")
		}
	}
	rows := make([]fireRow, 0, min(o.n, 1000))
	for f := range schedule.Upcoming(jobs, h.config.Zone, now) {
		rows = append(rows, fireRow{f.Job.ID, f.At.In(h.config.Zone), f.Job.Name(), f.Job.Description})
		if len(rows) == o.n {
			break
		}
	}
	return records(d, o.json, rows, fireRow.cells)
}
