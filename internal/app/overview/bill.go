package overview

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
)

// TrendDays is how many days, besides today, a trend is computed from.
const TrendDays = 28

// Bill is what the runs of some weeks cost, by job. A turn of a conversation counts for the conversation, as if that were a job.
type Bill struct {
	now  time.Time // in the owner's zone, which says what a day is
	jobs map[string]*account

	first time.Time // of all runs
}

// account is what one job cost.
type account struct {
	id, kind   string
	name       string
	persistent bool
	seen       bool // a run of the job's file was added

	days    map[string]float64 // USD by date
	context int                // tokens, of the newest run that has them
	window  int
	sized   time.Time // when that run began
}

// Trend is the development of what one job costs.
type Trend struct {
	Share   float64  `json:"share"`                    // of the cost of all jobs, 0 to 1
	Growth  *float64 `json:"growth_per_day,omitempty"` // 0.09 is 9 % more each day; nil: there are too few days with runs
	Context int      `json:"context,omitempty"`        // tokens of the session at the end of the latest run; 0: not known
	Window  int      `json:"window,omitempty"`         // tokens that the model can read; 0: not known
}

// NewBill returns a bill without runs, as of now.
func NewBill(now time.Time, zone *time.Location) *Bill {
	return &Bill{now: now.In(zone), jobs: map[string]*account{}}
}

// Read adds the runs of the last TrendDays days and returns them.
func (b *Bill) Read(runs runlog.Book) (runlog.Tallied, error) {
	all, err := runs.Tally(b.midnight(-TrendDays))
	for _, t := range all.Tallies {
		b.add(t)
	}
	return all, err
}

// midnight returns the beginning of a day so many days from today.
func (b *Bill) midnight(days int) time.Time {
	year, month, day := b.now.Date()
	return time.Date(year, month, day+days, 0, 0, 0, 0, b.now.Location())
}

// date returns the label of the day so many days from today. It counts from noon, which no clock change skips.
func (b *Bill) date(days int) string {
	year, month, day := b.now.Date()
	return time.Date(year, month, day+days, 12, 0, 0, 0, b.now.Location()).Format(time.DateOnly)
}

// add counts runs. The tallies come in the order of their newest runs, the latest first.
func (b *Bill) add(t *runlog.Tally) {
	if b.first.IsZero() || t.First.Before(b.first) {
		b.first = t.First
	}
	a := b.jobs[t.Job]
	if a == nil {
		a = &account{id: t.Job, kind: t.Kind, name: t.Newest.Name, days: map[string]float64{}}
		b.jobs[t.Job] = a
	}
	if t.OfJob() && !a.seen { // not compactions of its session
		a.kind, a.name, a.persistent, a.seen = t.Kind, t.Newest.Name, t.Newest.Persistent, true
	}
	a.days[t.Date] += t.Cost
	if t.Sized.After(a.sized) {
		a.context, a.window, a.sized = t.Context, t.Window, t.Sized
	}
}

// Trend returns the development of a job. Its share is that of the days from an instant on.
func (b *Bill) Trend(id string, from time.Time) Trend {
	a := b.jobs[id]
	if a == nil {
		return Trend{}
	}
	t := Trend{Context: a.context, Window: a.window}
	if all := b.total(from); all > 0 {
		t.Share = a.since(b.label(from)) / all
	}
	if g, ok := b.growth(a); ok {
		t.Growth = &g
	}
	return t
}

func (b *Bill) label(at time.Time) string { return at.In(b.now.Location()).Format(time.DateOnly) }

func (b *Bill) total(from time.Time) (all float64) {
	for _, a := range b.jobs {
		all += a.since(b.label(from))
	}
	return all
}

func (a *account) since(date string) (sum float64) {
	for day, cost := range a.days {
		if day >= date {
			sum += cost
		}
	}
	return sum
}

// costliest returns the jobs that cost something since an instant, the costliest first.
func (b *Bill) costliest(from time.Time) (list []*account) {
	date := b.label(from)
	list = slices.DeleteFunc(slices.Collect(maps.Values(b.jobs)), func(a *account) bool { return a.since(date) <= 0 })
	slices.SortStableFunc(list, func(x, y *account) int {
		return cmp.Or(cmp.Compare(y.since(date), x.since(date)), cmp.Compare(x.id, y.id))
	})
	return list
}

// The least that a growth is computed from: days on which the job cost something, and days from the first to the last of them.
const (
	leastDays = 5
	leastSpan = 7
)

// growth returns how much more the job costs from day to day, by the median of the growth between each two days that it cost something
// (the estimate of Theil and Sen). Up to a quarter of the days may be unlike the others, such as those of an outage, without effect.
// Today, which has not ended, does not count.
func (b *Bill) growth(a *account) (perDay float64, ok bool) {
	type point struct {
		day int
		log float64
	}
	var points []point
	for day := -TrendDays; day < 0; day++ {
		if cost := a.days[b.date(day)]; cost > 0 {
			points = append(points, point{day, math.Log(cost)})
		}
	}
	if len(points) < leastDays || points[len(points)-1].day-points[0].day < leastSpan {
		return 0, false
	}
	var slopes []float64
	for i, p := range points {
		for _, q := range points[i+1:] {
			slopes = append(slopes, (q.log-p.log)/float64(q.day-p.day))
		}
	}
	return math.Expm1(median(slopes)), true
}

// spent returns the costs of a job on the days of [from, to), counted from today, on which it cost something.
func (b *Bill) spent(a *account, from, to int) (costs []float64) {
	for day := from; day < to; day++ {
		if cost := a.days[b.date(day)]; cost > 0 {
			costs = append(costs, cost)
		}
	}
	return costs
}

// median returns the middle of a list that is not empty.
func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
