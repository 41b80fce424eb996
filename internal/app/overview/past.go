package overview

import (
	"slices"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The fires that a forecast is made from: those of the last week, in which every hour and weekday is, and further back, up to a month,
// until there are some.
const (
	pastDays  = 7
	fewFires  = 10
	pastLimit = 30 // days
)

// Pasts returns what the fires of jobs were like, by id. Fires that a pause, a limit or a missing approval held back say nothing about
// the job.
func Pasts(h app.Home, now time.Time, jobs []job.Job) map[string]forecast.Past {
	past, times, fires := map[string]forecast.Past{}, map[string][]time.Duration{}, map[string]int{}
	lacking := map[string]bool{} // jobs with too few fires so far
	for _, j := range jobs {
		if j.Enabled {
			lacking[j.ID] = true
		}
	}
	week := now.AddDate(0, 0, -pastDays)
	for r, err := range h.Runs.Since(now.AddDate(0, 0, -pastLimit)) { // newest first
		if err != nil || r.Started.Before(week) && len(lacking) == 0 {
			break
		}
		if !r.Done() || !r.OfJob() || r.Started.Before(week) && !lacking[r.Job] {
			continue
		}
		switch r.Outcome {
		case runlog.OK, runlog.Unreported, runlog.Failed, runlog.Timeout:
			times[r.Job] = append(times[r.Job], r.Finished.Sub(r.Started))
		case runlog.Interrupted, runlog.Waiting, runlog.Expired, runlog.Gated, runlog.Skipped:
		default:
			continue
		}
		p := past[r.Job]
		p.Cost += r.Cost
		past[r.Job] = p
		if fires[r.Job]++; fires[r.Job] >= fewFires {
			delete(lacking, r.Job)
		}
	}
	for id, p := range past {
		p.Cost /= float64(fires[id])
		if list := slices.Sorted(slices.Values(times[id])); len(list) > 0 {
			p.Runs, p.Time = len(list), list[len(list)/2]
		}
		past[id] = p
	}
	return past
}
