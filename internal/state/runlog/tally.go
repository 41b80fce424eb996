package runlog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Tally sums up the runs of one kind of one job that began on one day of the Book's zone. Of a run in progress it has what its record says.
type Tally struct {
	Date string `json:"date"`
	Kind string `json:"kind"`
	Job  string `json:"job"`

	First  time.Time `json:"first"`  // when the first of them began
	Newest Brief     `json:"newest"` // of those that took place, if there is one

	Runs     int             `json:"runs"`               // that took place
	Owner    int             `json:"owner,omitempty"`    // of Runs, those that the owner started
	Accounts int             `json:"accounts,omitempty"` // of all, those that stand in the accounts
	Outcomes map[Outcome]int `json:"outcomes"`           // of all; "": in progress

	Refused Span   `json:"refused,omitzero"`
	Failed  Span   `json:"failed,omitzero"`   // Problem, but not refused
	Problem *Brief `json:"problem,omitempty"` // the newest of both

	Interrupted []string `json:"interrupted,omitempty"` // their ids
	Faulted     []string `json:"faulted,omitempty"`     // the engines of the runs with a Fault

	Cost   float64        `json:"cost,omitempty"` // USD
	Models map[string]Use `json:"models,omitempty"`

	Before  int       `json:"before,omitempty"`  // tokens of the conversation at the beginning of the first run that has Context
	Began   time.Time `json:"began,omitzero"`    // when that run did
	Context int       `json:"context,omitempty"` // at the end of the last such run
	Window  int       `json:"window,omitempty"`  // of that run
	Sized   time.Time `json:"sized,omitzero"`    // when it began

	Writes map[string]time.Time `json:"writes,omitempty"` // directories that sealed programs could write to, with the beginning of the first such run
}

// Brief is what lists say of a run.
type Brief struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Label      string    `json:"label"`
	Persistent bool      `json:"persistent,omitempty"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Error      string    `json:"error,omitempty"`
	Refused    []string  `json:"refused,omitempty"` // by the seal
}

// Span is a number of runs, and when the first and the last of them began.
type Span struct {
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Use is what runs used of one model.
type Use struct {
	Runs    int     `json:"runs"` // that took place
	Reached bool    `json:"reached,omitempty"`
	Cost    float64 `json:"cost"` // USD
	Usage   Usage   `json:"usage"`
}

// Add returns the sum of two uses.
func (u Use) Add(v Use) Use {
	return Use{u.Runs + v.Runs, u.Reached || v.Reached, u.Cost + v.Cost, u.Usage.Add(v.Usage)}
}

// Extend returns the span with another one.
func (s Span) Extend(more Span) Span {
	switch {
	case more.Count == 0:
		return s
	case s.Count == 0:
		return more
	}
	s.Count += more.Count
	if more.First.Before(s.First) {
		s.First = more.First
	}
	if more.Last.After(s.Last) {
		s.Last = more.Last
	}
	return s
}

// OfJob reports whether the runs are those of a job's file.
func (t *Tally) OfJob() bool { return ofJob(t.Kind) }

// tallies are tallies by date, kind and job.
type tallies map[[3]string]*Tally

// Sum returns the tallies of records, by their newest run, the latest first. Dates are those of the zone.
func Sum(records []Record, zone *time.Location) []*Tally {
	all := tallies{}
	for _, r := range records {
		all.add(r, zone)
	}
	return newestFirst(slices.Collect(maps.Values(all)))
}

func newestFirst(list []*Tally) []*Tally {
	slices.SortFunc(list, func(a, b *Tally) int {
		return cmp.Or(b.Newest.Started.Compare(a.Newest.Started), strings.Compare(b.Newest.ID, a.Newest.ID))
	})
	return list
}

// add counts a run, in any order.
func (all tallies) add(r Record, zone *time.Location) {
	of := Tally{Date: r.Started.In(zone).Format(time.DateOnly), Kind: r.Kind, Job: r.Job}
	t := all[of.key()]
	if t == nil {
		of.First = r.Started
		t = &of
		all[of.key()] = t
	}
	t.add(r)
}

func (t *Tally) key() [3]string { return [3]string{t.Date, t.Kind, t.Job} }

func (t *Tally) add(r Record) {
	if r.Started.Before(t.First) {
		t.First = r.Started
	}
	took := t.Runs > 0
	if r.TookPlace() == took && !r.Started.Before(t.Newest.Started) || r.TookPlace() && !took {
		t.Newest = r.brief()
	}
	if t.Outcomes == nil {
		t.Outcomes = map[Outcome]int{}
	}
	if t.Models == nil {
		t.Models = map[string]Use{}
	}
	t.Outcomes[r.Outcome]++
	t.Cost += r.Cost
	if r.Accounted {
		t.Accounts++
	}
	if use := (Use{Reached: r.Turns > 0 || r.Cost > 0, Cost: r.Cost, Usage: r.Usage}); r.TookPlace() {
		use.Runs = 1
		t.Models[r.Model] = t.Models[r.Model].Add(use)
		t.Runs++
		if r.Owner {
			t.Owner++
		}
	}
	if r.Problem() {
		t.problem(r)
	}
	if r.Outcome == Interrupted {
		t.Interrupted = append(t.Interrupted, r.ID)
	}
	if r.Fault != "" && r.Engine != "" && !slices.Contains(t.Faulted, r.Engine) {
		t.Faulted = append(t.Faulted, r.Engine)
	}
	if r.Context > 0 {
		t.size(r)
	}
	if r.Sealed != nil {
		for _, dir := range r.Sealed.Write {
			t.writes(dir, r.Started)
		}
	}
}

func (t *Tally) problem(r Record) {
	one := Span{1, r.Started, r.Started}
	if r.Outcome == Refused {
		t.Refused = t.Refused.Extend(one)
	} else {
		t.Failed = t.Failed.Extend(one)
	}
	if t.Problem == nil || !r.Started.Before(t.Problem.Started) {
		brief := r.brief()
		t.Problem = &brief
	}
}

// size notes how long the conversation was.
func (t *Tally) size(r Record) {
	if t.Began.IsZero() || r.Started.Before(t.Began) {
		t.Before, t.Began = cmp.Or(r.ContextBefore, r.Context), r.Started
	}
	if !r.Started.Before(t.Sized) {
		t.Context, t.Window, t.Sized = r.Context, r.Window, r.Started
	}
}

func (t *Tally) writes(dir string, at time.Time) {
	if first, known := t.Writes[dir]; known && !at.Before(first) {
		return
	}
	if t.Writes == nil {
		t.Writes = map[string]time.Time{}
	}
	t.Writes[dir] = at
}

func (r Record) brief() Brief {
	b := Brief{ID: r.ID, Name: r.Name, Label: r.Label(), Persistent: r.Persistent, Started: r.Started, Outcome: r.Outcome, Error: r.Error}
	if r.Done() {
		b.Finished = *r.Finished
	}
	if r.Sealed != nil {
		b.Refused = r.Sealed.Refused
	}
	return b
}
