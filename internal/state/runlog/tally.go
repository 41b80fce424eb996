package runlog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Tally sums up the runs of one job and kind that began on one day in the Book's zone. A run in progress counts with what its record says
// so far.
type Tally struct {
	Date string `json:"date"`
	Kind string `json:"kind"`
	Job  string `json:"job"`

	First  time.Time `json:"first"`  // when the first of the runs began
	Newest Brief     `json:"newest"` // the newest run that took place, or else the newest record

	Runs     int             `json:"runs"`               // how many took place
	Owner    int             `json:"owner,omitempty"`    // how many of Runs the owner started
	Accounts int             `json:"accounts,omitempty"` // how many records have entries in the accounts
	Outcomes map[Outcome]int `json:"outcomes"`           // number of records by outcome; "" is in progress

	Refused Span   `json:"refused,omitzero"`
	Failed  Span   `json:"failed,omitzero"`   // runs for which Problem is true and that were not refused
	Problem *Brief `json:"problem,omitempty"` // the newest problem, refused runs included

	Interrupted []string `json:"interrupted,omitempty"` // ids of the interrupted runs
	Faulted     []string `json:"faulted,omitempty"`     // engines of the runs with a Fault

	// the runs that reached an end of their own, by how long they took: in ms, of which only the first two digits are kept
	Times map[int64]int `json:"times,omitempty"`

	Cost   float64        `json:"cost,omitempty"` // USD
	Models map[string]Use `json:"models,omitempty"`

	Before  int       `json:"before,omitempty"`  // tokens in the conversation at the beginning of the first run that has Context
	Began   time.Time `json:"began,omitzero"`    // when that run began
	Context int       `json:"context,omitempty"` // tokens at the end of the last such run
	Window  int       `json:"window,omitempty"`  // Window of that last run
	Sized   time.Time `json:"sized,omitzero"`    // when that last run began

	// directories that sealed programs could write to, each with the time when the first such run began
	Writes map[string]time.Time `json:"writes,omitempty"`
}

// Brief is the part of a run's record that lists show.
type Brief struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Label      string    `json:"label"`
	Persistent bool      `json:"persistent,omitempty"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Error      string    `json:"error,omitempty"`
	Refused    []string  `json:"refused,omitempty"` // paths that the seal denied
}

// Span is a number of runs, with the times when the first and the last of them began.
type Span struct {
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Use is what runs consumed of one model.
type Use struct {
	Runs    int     `json:"runs"` // how many took place
	Reached bool    `json:"reached,omitempty"`
	Cost    float64 `json:"cost"` // USD
	Usage   Usage   `json:"usage"`
}

// Add returns the sum of two uses.
func (u Use) Add(v Use) Use {
	return Use{u.Runs + v.Runs, u.Reached || v.Reached, u.Cost + v.Cost, u.Usage.Add(v.Usage)}
}

// Extend returns the span that covers both.
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

// OfJob reports whether the runs belong to a job file.
func (t *Tally) OfJob() bool { return ofJob(t.Kind) }

// tallies holds tallies by date, kind and job.
type tallies map[[3]string]*Tally

// Sum returns the tallies of records, sorted by their newest run, the latest first. Dates are those of zone.
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

// add counts a run. The order of calls does not matter.
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
	ran := t.Runs > 0
	if r.TookPlace() == ran && !r.Started.Before(t.Newest.Started) || r.TookPlace() && !ran {
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
	if r.Done() && slices.Contains([]Outcome{OK, Unreported, Failed, Timeout}, r.Outcome) {
		t.took(r.Finished.Sub(r.Started))
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

// took counts a run in Times.
func (t *Tally) took(time time.Duration) {
	if t.Times == nil {
		t.Times = map[int64]int{}
	}
	digits := int64(1)
	for ms := time.Milliseconds(); ms/digits >= 100; {
		digits *= 10
	}
	t.Times[time.Milliseconds()/digits*digits]++
}

// size records how long the conversation was.
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
