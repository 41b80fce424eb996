package spend

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

type page struct {
	Days map[string]day   // by date
	Runs map[string]entry // by id
	Jobs map[string]habit // by id

	rest map[string]json.RawMessage // keys that this version does not know; nil if the page was not read from disk
}

// day is the total of the settled runs that reserved money on one day. The type of its counts is small, so that sums cannot overflow.
type day struct {
	Spent money  `json:"spent"`
	Runs  uint32 `json:"runs"`
	Owner uint32 `json:"owner,omitempty"` // how many of them the owner started
	Also  string `json:"also,omitempty"`  // an earlier day that the clock has shown since, on which this day counts as well
}

type habit struct {
	Likely money  `json:"likely"`
	Day    string `json:"day"` // day of the latest run
}

type entry struct {
	Day      string `json:"day"`
	Job      string `json:"job,omitempty"`
	Owner    bool   `json:"owner,omitempty"`    // the owner started the run, so it is never refused
	Reserved money  `json:"reserved,omitempty"` // 0 if the reservation has no limit
	Cost     money  `json:"cost,omitempty"`
	Settled  string `json:"settled,omitempty"` // date on which the run was settled; "" until then
}

func newPage() page {
	return page{map[string]day{}, map[string]entry{}, map[string]habit{}, map[string]json.RawMessage{}}
}

func (p *page) UnmarshalJSON(data []byte) error {
	*p = newPage()
	if err := json.Unmarshal(data, &p.rest); err != nil {
		return err
	}
	for key, v := range map[string]any{"days": &p.Days, "runs": &p.Runs, "jobs": &p.Jobs} {
		if raw, found := p.rest[key]; found {
			if err := json.Unmarshal(raw, v); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			delete(p.rest, key)
		}
	}
	if p.Days == nil || p.Runs == nil || p.Jobs == nil || p.rest == nil {
		return fmt.Errorf("null instead of an object")
	}
	return nil
}

func (p page) MarshalJSON() ([]byte, error) {
	all := map[string]any{"days": p.Days, "runs": p.Runs}
	if len(p.Jobs) > 0 {
		all["jobs"] = p.Jobs
	}
	for key, raw := range p.rest {
		all[key] = raw
	}
	return json.Marshal(all)
}

// label returns the date of an instant as stored in the page. monthOf returns the prefix that all days of a month
// share.
func label(t time.Time) string   { return t.Format(time.DateOnly) }
func monthOf(t time.Time) string { return label(t)[:len("2006-01")] }

// sum returns the total of the day or month with a label.
func (p *page) sum(on string) sum {
	return p.total(func(date, also string) bool {
		return period(date, on) == on || period(date, on) > on && (also == "" || period(also, on) >= on)
	})
}

// of returns the total of a past day or its month, given by a label. It counts days by their dates only.
func (p *page) of(on string) sum {
	return p.total(func(date, _ string) bool { return period(date, on) == on })
}

// total adds up the days and the open runs for which counts returns true.
func (p *page) total(counts func(date, also string) bool) (s sum) {
	for date, d := range p.Days {
		if counts(date, d.Also) {
			s.spent += d.Spent
			s.runs += int(d.Runs)
			s.typed += int(d.Owner)
		}
	}
	for _, e := range p.Runs {
		if e.Settled == "" && counts(e.Day, "") {
			s.reserved += e.Reserved
		}
	}
	return s
}

// period returns the part of a date that has the form of on: the day or the month.
func period(date, on string) string { return date[:min(len(date), len(on))] }

func (p *page) add(date string, spent money) {
	d := p.Days[date]
	d.Spent = min(max(d.Spent+spent, 0), highest)
	p.Days[date] = d
}

// count adds runs to a day.
func (p *page) count(date string, runs int, owner bool) {
	d := p.Days[date]
	d.Runs = uint32(max(int(d.Runs)+runs, 0))
	if owner {
		d.Owner = uint32(max(int(d.Owner)+runs, 0))
	}
	p.Days[date] = d
}

func (p *page) settle(run string, cost money, today string) {
	e := p.Runs[run]
	before := money(0)
	if e.Settled != "" {
		before = e.Cost
	} else if cost > 0 {
		likely := p.Jobs[e.Job].Likely
		p.learn(e.Job, max(cost, likely-(likely-cost)/4), today)
	}
	p.add(e.Day, cost-before)
	p.Runs[run] = entry{Day: e.Day, Job: e.Job, Owner: e.Owner, Cost: cost, Settled: today}
}

func (p *page) learn(job string, likely money, today string) {
	if job != "" && likely > 0 {
		p.Jobs[job] = habit{likely, today}
	}
}

func (p *page) reclaim(look look, today string) {
	for run, e := range p.Runs {
		if e.Settled != "" || look == nil {
			continue
		}
		if cost, alive := look(run); !alive {
			p.settle(run, known(cost, e.Reserved), today)
		}
	}
}

// known returns a cost, or otherwise if the cost is invalid.
func known(cost float64, otherwise money) money {
	if m, err := toMoney(cost); err == nil {
		return m
	}
	return otherwise
}

// recall adds a run that is missing from the page.
func (p *page) recall(r Past, l Limits, zone *time.Location) {
	date, perRun := label(r.Started.In(zone)), ceiling(l.PerRun)
	if perRun == unlimited {
		perRun = 0
	}
	cost := known(r.Cost, perRun)
	p.count(date, 1, r.Owner)
	p.Runs[r.Run] = entry{Day: date, Job: r.Job, Owner: r.Owner, Reserved: max(perRun, cost)}
	if !r.Alive {
		p.settle(r.Run, cost, date)
	}
}

// note marks every day after today as counting today, and removes the mark of every day that has been reached. It reports whether
// anything changed.
func (p *page) note(today string) (changed bool) {
	for date, d := range p.Days {
		also := d.Also
		if date <= today {
			also = ""
		} else if also == "" {
			also = today
		}
		if also != d.Also {
			d.Also = also
			p.Days[date] = d
			changed = true
		}
	}
	return changed
}

// kept is the number of days before today that stay in the page; a month needs 30. keptRuns is the number of settled runs.
const (
	kept     = 62
	keptRuns = 200
)

// forgetRuns removes settled runs except those that began last, and run.
func (p *page) forgetRuns(run string) {
	var ids []string
	for id, e := range p.Runs {
		if e.Settled != "" && id != run {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // ids sort by the time at which their runs began
	for _, id := range ids[:max(0, len(ids)-keptRuns)] {
		delete(p.Runs, id)
	}
}

// forget removes what no total needs: the oldest days, and runs that were settled before the latest day other than today.
func (p *page) forget(today string) {
	var past []string
	for _, date := range slices.Sorted(maps.Keys(p.Days)) {
		if date < today {
			past = append(past, date)
		}
	}
	if len(past) == 0 {
		return
	}
	gone := max(0, len(past)-kept)
	for _, date := range past[:gone] {
		delete(p.Days, date)
	}
	maps.DeleteFunc(p.Jobs, func(_ string, h habit) bool { return h.Day < past[gone] && gone > 0 })
	latest := past[len(past)-1]
	maps.DeleteFunc(p.Runs, func(_ string, e entry) bool { return e.Settled != "" && e.Settled < latest })
}

func newEntry(date string, c Claim, grant money) entry {
	if grant == unlimited {
		grant = 0
	}
	return entry{Day: date, Job: c.Job, Owner: c.Force, Reserved: grant}
}

// granted returns the reservation of an entry as newEntry received it.
func (e entry) granted() money {
	if e.Reserved == 0 {
		return unlimited
	}
	return e.Reserved
}

func (e entry) open(run string) error {
	if e.Settled != "" {
		return fmt.Errorf("run %s: already settled", run)
	}
	return nil
}
