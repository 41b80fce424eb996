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
	bill := NewBill(h.Disk.Now(), h.Config.Zone)
	from := bill.midnight(1 - weekDays)
	read := bill.Read
	if brief {
		from = bill.midnight(-1)
		read = func(runs runlog.Book) (runlog.Tallied, error) { return runs.Tally(from) }
	}
	all, err := read(h.Runs)
	if err != nil {
		return err
	}
	for _, err := range all.Unreadable {
		h.Disk.Warn(err.Error())
	}
	for _, r := range slices.Backward(all.Running) {
		s.Running = append(s.Running, run{ID: r.ID, Job: r.Job, Label: r.Label(), Started: r.Started.In(h.Config.Zone)})
	}
	s.failed(h, all.Tallies, from)
	for _, t := range all.Tallies {
		if t.Date == bill.date(0) {
			s.Runs.Typed += t.Owner
			s.Runs.Automatic += t.Runs - t.Owner
		}
	}
	s.Week = weeks(all.Tallies, bill.label(from))
	if brief {
		return nil
	}
	for i := range s.Week {
		s.Week[i].Trend = bill.Trend(s.Week[i].Job, from)
	}
	month, err := monthOf(h)
	s.Findings = append(s.Findings, bill.Findings(month)...)
	return err
}

// failed lists the newest failure of each job since an instant, if the owner has not seen it, or no later run of the job went better.
func (s *Status) failed(h app.Home, all []*runlog.Tally, from time.Time) {
	looked, last, listed := looked(h), map[string]time.Time{}, map[string]bool{} // when the last run of each job began
	for _, t := range all {
		if t.Runs > 0 && t.Newest.Started.After(last[t.Job]) {
			last[t.Job] = t.Newest.Started
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(t *runlog.Tally) bool { return t.Problem == nil || t.Problem.Started.Before(from) })
	slices.SortStableFunc(all, func(a, b *runlog.Tally) int { return b.Problem.Started.Compare(a.Problem.Started) })
	for _, t := range all {
		p := t.Problem
		item := run{ID: p.ID, Job: t.Job, Label: p.Label, Started: p.Started.In(h.Config.Zone), Outcome: p.Outcome, Error: p.Error}
		item.New = !looked.IsZero() && p.Finished.After(looked)
		item.Recovered = last[t.Job].After(p.Started)
		if !listed[t.Job] && (item.New || !item.Recovered && h.Disk.Now().Sub(p.Started) <= recent) {
			s.Failed, listed[t.Job] = append(s.Failed, item), true
		}
	}
}

// weeks sums up the runs of routines from a date on that have ended. The tallies come in the order of their newest runs, the latest first.
func weeks(all []*runlog.Tally, from string) (list []week) {
	list = []week{}
	for _, t := range all {
		ended := t.Runs - t.Outcomes[""]
		if t.Kind != string(job.Routine) || t.Date < from || ended == 0 {
			continue
		}
		i := slices.IndexFunc(list, func(w week) bool { return w.Job == t.Job })
		if i < 0 {
			i, list = len(list), append(list, week{Job: t.Job, Label: t.Newest.Label})
		}
		w := &list[i]
		w.Runs += ended
		w.Failed += t.Failed.Count + t.Refused.Count
		w.Cost += t.Cost
	}
	slices.SortStableFunc(list, func(a, b week) int { return strings.Compare(a.Label+a.Job, b.Label+b.Job) })
	return list
}

// missed finds the slots that were missed since the owner looked last, and in the last day.
func (s *Status) missed(h app.Home, brief bool) (err error) {
	now := h.Disk.Now()
	from, oldest := now.Add(-recent), now.AddDate(0, 0, -weekDays)
	if at := looked(h); !at.IsZero() && at.Before(from) && !brief {
		from = at
	}
	if from.Before(oldest) {
		from = oldest
	}
	s.Missed, err = missed(h, from, now)
	return err
}

// missed returns the slots in [from, to) at which nothing ran, because the machine or the scheduler was off, or limits held them. The list
// is not nil.
func missed(h app.Home, from, to time.Time) ([]tally, error) {
	list := []tally{}
	answers, err := h.Audit(from)
	for _, a := range answers {
		if (a.Outcome == slot.Missed || a.Outcome == forecast.Unaccounted) && a.Slot.Before(to) {
			list = count(list, a.Job, a.Name, runlog.Span{Count: 1, First: a.Slot, Last: a.Slot})
		}
	}
	return list, err
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
