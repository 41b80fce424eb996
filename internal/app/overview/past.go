package overview

import (
	"maps"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The fires that a forecast is made from: those since the beginning of the day a week ago, in which every hour and weekday is, and for a
// job with few of them those of earlier days, up to a month, until there are some.
const (
	pastDays  = 7
	fewFires  = 10
	pastLimit = 30 // days
)

// Pasts returns what the fires of jobs were like, by id. Fires that a pause, a limit or a missing approval held back say nothing about
// the job.
func Pasts(h app.Home, now time.Time, jobs []job.Job) map[string]forecast.Past {
	past, times, fires := map[string]forecast.Past{}, map[string]map[int64]int{}, map[string]int{}
	enabled := map[string]bool{}
	for _, j := range jobs {
		enabled[j.ID] = j.Enabled
	}
	week := now.In(h.Config.Zone).AddDate(0, 0, -pastDays).Format(time.DateOnly)
	all, _ := h.Runs.Tally(now.AddDate(0, 0, -pastLimit)) // without the days that cannot be read
	for _, t := range all.Tallies {                       // newest first
		if !t.OfJob() || t.Date < week && (!enabled[t.Job] || fires[t.Job] >= fewFires) {
			continue
		}
		n := 0
		for _, o := range []runlog.Outcome{
			runlog.OK, runlog.Unreported, runlog.Failed, runlog.Timeout,
			runlog.Interrupted, runlog.Waiting, runlog.Expired, runlog.Gated, runlog.Skipped,
		} {
			n += t.Outcomes[o]
		}
		if n == 0 {
			continue
		}
		fires[t.Job] += n
		p := past[t.Job]
		p.Cost += t.Cost
		past[t.Job] = p
		if times[t.Job] == nil {
			times[t.Job] = map[int64]int{}
		}
		for took, n := range t.Times {
			times[t.Job][took] += n
		}
	}
	for id, p := range past {
		p.Cost /= float64(fires[id])
		p.Runs, p.Time = middle(times[id])
		past[id] = p
	}
	return past
}

// middle returns how many runs there are, and how long half of them took at most.
func middle(times map[int64]int) (runs int, half time.Duration) {
	for _, n := range times {
		runs += n
	}
	left := runs/2 + 1
	for _, ms := range slices.Sorted(maps.Keys(times)) {
		if left -= times[ms]; left <= 0 {
			return runs, time.Duration(ms) * time.Millisecond
		}
	}
	return runs, 0
}
