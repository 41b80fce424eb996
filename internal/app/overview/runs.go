package overview

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// run is one run.
type run struct {
	ID      string         `json:"id"`
	Job     string         `json:"job"`
	Label   string         `json:"label"`
	Started time.Time      `json:"started"`
	Outcome runlog.Outcome `json:"outcome,omitempty"` // "" while it runs
	Error   string         `json:"error,omitempty"`

	New       bool `json:"new,omitempty"`       // it failed since the owner looked last
	Recovered bool `json:"recovered,omitempty"` // a later run of the job did not fail
}

// week is the runs of one routine in the last week that have ended, without fires that were skipped or paused.
type week struct {
	Job    string  `json:"job"`
	Label  string  `json:"label"`
	Runs   int     `json:"runs"`
	Failed int     `json:"failed"`
	Cost   float64 `json:"cost"` // USD
	Trend
}

// recent is how far back a job whose latest run failed is listed although the owner has seen it.
const recent = 24 * time.Hour

// weekDays is how many days the sums by routine cover.
const weekDays = 7

// runs finds the runs in progress, those that failed, the sums by routine and, unless it is to be brief, the trends and what follows
// from them.
func (s *Status) runs(h app.Home, brief bool) error {
	now, looked, bill := h.Disk.Now(), looked(h), NewBill(h.Disk.Now(), h.Config.Zone)
	from, since := now.AddDate(0, 0, -weekDays), bill.Since()
	if brief {
		from, since = now.AddDate(0, 0, -1), now.AddDate(0, 0, -1)
	}
	seen, listed, weeks := map[string]bool{}, map[string]bool{}, map[string]*week{}
	for r, err := range h.Runs.Since(since) {
		if err != nil {
			return err
		}
		r = h.Runs.CutOff(r)
		bill.Add(r)
		if !r.TookPlace() || r.Started.Before(from) {
			continue
		}
		s.countRun(r, bill.midnight(0))
		item := run{ID: r.ID, Job: r.Job, Label: r.Label(), Started: r.Started.In(h.Config.Zone), Outcome: r.Outcome, Error: r.Error, Recovered: seen[r.Job]}
		item.New = !looked.IsZero() && r.Done() && r.Finished.After(looked)
		switch {
		case r.Outcome == "":
			s.Running = append(s.Running, item)
		case r.Problem() && !listed[r.Job] && (item.New || !seen[r.Job] && now.Sub(r.Started) <= recent):
			s.Failed, listed[r.Job] = append(s.Failed, item), true
		}
		seen[r.Job] = true
		if r.Kind == string(job.Routine) && r.Outcome != "" {
			sum(weeks, r)
		}
	}
	slices.Reverse(s.Running)
	for id, w := range weeks {
		w.Trend = bill.Trend(id, from)
		s.Week = append(s.Week, *w)
	}
	slices.SortStableFunc(s.Week, func(a, b week) int { return strings.Compare(a.Label+a.Job, b.Label+b.Job) })
	if brief {
		return nil
	}
	totals, err := h.Spend.Totals()
	s.Findings = append(s.Findings, bill.Findings(Month{totals.Month.Spent, h.Spend.Limits.PerMonth})...)
	return err
}

// countRun counts a run of today, which began at midnight.
func (s *Status) countRun(r runlog.Record, midnight time.Time) {
	switch {
	case r.Started.Before(midnight):
	case r.Owner:
		s.Runs.Typed++
	default:
		s.Runs.Automatic++
	}
}

// missed finds the slots that were missed since the owner looked last, and in the last day.
func (s *Status) missed(h app.Home, brief bool) error {
	now := h.Disk.Now()
	from, oldest := now.Add(-recent), now.AddDate(0, 0, -weekDays)
	if at := looked(h); !at.IsZero() && at.Before(from) && !brief {
		from = at
	}
	if from.Before(oldest) {
		from = oldest
	}
	answers, err := h.Audit(from)
	for _, a := range answers {
		if isMissed(a) {
			s.Missed = count(s.Missed, a.Job, a.Name, a.Slot)
		}
	}
	return err
}

// isMissed reports whether nothing ran at a slot, because the machine or the scheduler was off, or limits held it.
func isMissed(a forecast.Answer) bool {
	return a.Outcome == slot.Missed || a.Outcome == forecast.Unaccounted
}

func sum(weeks map[string]*week, r runlog.Record) {
	w := weeks[r.Job]
	if w == nil {
		w = &week{Job: r.Job, Label: r.Label()} // of the newest run
		weeks[r.Job] = w
	}
	w.Runs++
	w.Cost += r.Cost
	if r.Problem() {
		w.Failed++
	}
}

// page is state/status.json. Two processes that write it at once do no harm: one of their times stays.
type page struct {
	Looked time.Time `json:"looked"`
}

func path(h app.Home) string { return h.Dir.State("status.json") }

// looked returns when the owner saw the status last; zero if that is not known, or in the future.
func looked(h app.Home) time.Time {
	var p page
	data, err := store.Read(path(h))
	if err != nil || json.Unmarshal(data, &p) != nil || p.Looked.After(h.Disk.Now()) {
		return time.Time{}
	}
	return p.Looked
}

// Look records that the owner has seen the status. at is an instant before it was collected, so that no later failure counts as seen.
func Look(h app.Home, at time.Time) error {
	return store.WriteJSON(path(h), page{at.In(h.Config.Zone)}, store.Buffered)
}
