package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
)

// maxDays is how many days ahead fires are listed: a century. maxFires is the most fires that are listed.
const (
	maxDays  = 36525
	maxFires = 100_000
)

type scheduleListOptions struct {
	job, now string
	n, days  int
	cost     bool
}

func newScheduleList(d *deps) *cobra.Command {
	var o scheduleListOptions
	cmd := command(agentNever(programs), "list [JOB]", "List future fires: id, time, name, description, notes",
		func(cmd *cobra.Command, args []string) error {
			o.job = strings.Join(args, "") // one at most
			switch days, number := cmd.Flags().Changed("days"), cmd.Flags().Changed("number"); {
			case o.n < 1, days && o.days < 1:
				return usage("-n and --days: want 1 or more")
			case days && number:
				return usage("-n and --days exclude each other")
			}
			return runScheduleList(cmd.Context(), d, o)
		})
	f := cmd.Flags()
	f.IntVarP(&o.n, "number", "n", 10, "number of fires to list")
	f.IntVar(&o.days, "days", 0, "list all fires of this many days instead")
	f.BoolVar(&o.cost, "cost", false, "add the expected cost of each fire, the sum so far, and the pings left if every run "+
		"pings")
	f.StringVar(&o.now, "now", "", "list the fires after this time, RFC 3339, instead of now")
	return withJSON(d, cmd, jsonLines+", with job and at")
}

type fireRow struct {
	Job         string    `json:"job"`
	At          time.Time `json:"at"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Notes       []string  `json:"notes,omitempty"`
	Cost        *float64  `json:"cost,omitempty"`       // USD, what a fire of the job has cost on average
	Total       *float64  `json:"total,omitempty"`      // of all fires so far
	Pings       *int      `json:"pings_left,omitempty"` // left if all fires ping
	shown       float64   // Total as the sum of the costs that are shown
}

func (r fireRow) cells() []any {
	cells := []any{r.Job, due(r.At), brief(r.Name), brief(r.Description), prose(strings.Join(r.Notes, "; "))}
	if r.Cost != nil {
		cells = slices.Insert(cells, 3, cellsOf([]string{fine(*r.Cost), fine(r.shown), strconv.Itoa(*r.Pings)})...)
	}
	return cells
}

// fine returns a cost rounded to four digits after the point, which a cheap fire needs.
func fine(cost float64) string { return fmt.Sprintf("$%.4f", rounded(cost)) }

func rounded(cost float64) float64 { return math.Round(cost*1e4) / 1e4 }

func runScheduleList(ctx context.Context, d *deps, o scheduleListOptions) error {
	if o.days > maxDays || o.n > maxFires {
		return usage("want %d days or fewer, and %d fires", maxDays, maxFires)
	}
	s, h, err := d.jobSet(o.job)
	if err != nil {
		return err
	}
	now := d.Now()
	if o.now != "" {
		if now, err = parseTime(o.now, h.Config.Zone); err != nil {
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
	d.tellSilent(h, jobs)
	fires, err := o.fires(ctx, jobs, h, now)
	if err != nil {
		return err
	}
	status, err := h.Budget.Status()
	if err != nil {
		return err
	}
	past := map[string]forecast.Past{}
	if len(fires) > 0 {
		past = overview.Pasts(h, now, jobs)
	}
	bucket := forecast.Bucket{Capacity: float64(status.Capacity), Available: status.Available, Every: status.RefillEvery}
	var rows []fireRow
	total, shown := 0.0, 0.0
	for _, f := range forecast.Forecast(fires, past, bucket, now) {
		row := fireRow{Job: f.Job.ID, At: f.At.In(h.Config.Zone), Name: f.Job.Name(), Description: f.Job.Description, Notes: f.Notes}
		total, shown = total+f.Cost, shown+rounded(f.Cost)
		if o.cost {
			row.Cost, row.Total, row.Pings, row.shown = new(f.Cost), new(total), new(f.Pings), shown
		}
		rows = append(rows, row)
	}
	if o.days == 0 {
		rows = rows[:min(o.n, len(rows))]
	}
	columns := "ID TIME NAME DESCRIPTION NOTES"
	if o.cost {
		columns = "ID TIME NAME COST SUM PINGS-LEFT DESCRIPTION NOTES"
	}
	return records(d, columns, rows, fireRow.cells)
}

// tellSilent warns of routines that never fire, and of a pause.
func (d *deps) tellSilent(h app.Home, jobs []job.Job) {
	for _, j := range jobs {
		if j.Kind == job.Routine && j.Enabled && j.Schedule.Never() {
			d.warn(h.Dir.Relative(j.Path) + ": cron: " + j.Cron + " never fires")
		}
	}
	switch paused, until, _ := h.Spend.Paused(); {
	case paused && until.IsZero():
		d.warn("everything is paused: ollim resume")
	case paused:
		d.warn("everything is paused until " + clock(until.In(h.Config.Zone)) + ": ollim resume")
	}
}

// fires returns the fires to list, and the others in the minute of the last one, which a note on that one counts.
func (o *scheduleListOptions) fires(ctx context.Context, jobs []job.Job, h app.Home, now time.Time) (fires []forecast.Fire, err error) {
	end := now.AddDate(0, 0, o.days)
	sameMinute := func(a, b time.Time) bool { return a.Truncate(time.Minute).Equal(b.Truncate(time.Minute)) }
	for f := range forecast.Upcoming(jobs, h.Config.Zone, now) {
		if o.days > 0 && f.At.After(end) || o.days == 0 && len(fires) >= o.n && !sameMinute(f.At, fires[o.n-1].At) {
			break
		}
		if f.At.Year() > lastYear {
			break
		}
		if len(fires) >= maxFires && o.days > 0 {
			return nil, usage("--days %d: more than %d fires; use fewer days", o.days, maxFires)
		}
		fires = append(fires, f)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return fires, nil
}
