package spend

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// page is the state of the accounts.
type page struct {
	Days map[string]day   `json:"days"` // by date; nil: nothing is known, not even that nothing was spent
	Runs map[string]entry `json:"runs"` // by id
	Jobs map[string]habit `json:"jobs"` // by id
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

func newPage() page { return page{map[string]day{}, map[string]entry{}, map[string]habit{}} }

// copied returns a page that can be changed alone.
func (p page) copied() page { return page{maps.Clone(p.Days), maps.Clone(p.Runs), maps.Clone(p.Jobs)} }

// label returns the date of an instant as stored in the page. monthOf returns the prefix that all days of a month share.
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

// add adds a cost and a number of runs to a day. The first of a day forgets what is too old.
func (p *page) add(date string, spent money, runs int, owner bool) {
	d, known := p.Days[date]
	d.Spent = min(max(d.Spent+spent, 0), highest)
	d.Runs = uint32(max(int(d.Runs)+runs, 0))
	if owner {
		d.Owner = uint32(max(int(d.Owner)+runs, 0))
	}
	if p.Days[date] = d; !known {
		p.forget(date)
	}
}

func (p *page) reserve(m move) {
	p.Runs[m.Run] = entry{Day: m.Day, Job: m.Job, Owner: m.Owner, Reserved: m.Reserved}
	p.add(m.Day, 0, 1, m.Owner)
}

func (p *page) raise(m move) {
	if e, known := p.Runs[m.Run]; known && e.Reserved != 0 { // otherwise the run has no limit
		e.Reserved = max(e.Reserved, m.Reserved)
		p.Runs[m.Run] = e
	}
}

func (p *page) settle(m move) {
	e, known := p.Runs[m.Run]
	if !known {
		p.reserve(move{Run: m.Run, Day: m.Day})
		e.Day = m.Day
	}
	before := money(0)
	if e.Settled != "" {
		before = e.Cost
	} else if m.Cost > 0 {
		likely := p.Jobs[e.Job].Likely
		p.learn(e.Job, max(m.Cost, likely-(likely-m.Cost)/4), m.Day)
	}
	p.add(e.Day, m.Cost-before, 0, false)
	p.Runs[m.Run] = entry{Day: e.Day, Job: e.Job, Owner: e.Owner, Cost: m.Cost, Settled: m.Day}
	p.forgetRuns(m.Run)
}

func (p *page) release(m move) {
	if e, known := p.Runs[m.Run]; known {
		delete(p.Runs, m.Run)
		p.add(e.Day, 0, -1, e.Owner)
		p.learn(e.Job, max(p.Jobs[e.Job].Likely, m.Needs), m.Day)
	}
}

func (p *page) learn(job string, likely money, today string) {
	if job != "" && likely > 0 {
		p.Jobs[job] = habit{likely, today}
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
	p.reserve(move{Run: r.Run, Day: date, Job: r.Job, Owner: r.Owner, Reserved: max(perRun, cost)})
	if !r.Alive {
		p.settle(move{Run: r.Run, Day: date, Cost: cost})
	}
}

// note marks every day after a day that the clock shows as counting on that day too, and removes the mark of every day that is reached.
func (p *page) note(m move) {
	for _, date := range p.unnoted(m.Day) {
		d := p.Days[date]
		d.Also = ""
		if date > m.Day {
			d.Also = m.Day
		}
		p.Days[date] = d
	}
}

// unnoted lists the days that note changes.
func (p *page) unnoted(today string) (dates []string) {
	for date, d := range p.Days {
		if (date > today) == (d.Also == "") {
			dates = append(dates, date)
		}
	}
	return dates
}

// kept is the number of days before today that stay in the page; a month needs 30. keptRuns is the number of settled runs. spareRuns more
// stay until they are looked for.
const (
	kept      = 62
	keptRuns  = 200
	spareRuns = 50
)

// forgetRuns removes settled runs except those that began last, and run.
func (p *page) forgetRuns(run string) {
	if len(p.Runs) <= keptRuns+spareRuns {
		return
	}
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

// granted returns the reservation of an entry as it was granted.
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
