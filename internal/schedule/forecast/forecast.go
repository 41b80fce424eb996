// Package forecast computes the future fires of all jobs, in one order.
package forecast

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

// Fire is one fire to come.
type Fire struct {
	Job *job.Job
	At  time.Time // in the job's own zone
}

// Upcoming yields the fires of the enabled jobs after an instant, earliest first, those of one instant by their jobs' files, without end
// unless no job fires any more. zone is that of jobs without one of their own.
func Upcoming(jobs []job.Job, zone *time.Location, after time.Time) iter.Seq[Fire] {
	return func(yield func(Fire) bool) {
		var queue []Fire // in that order
		for i := range jobs {
			j := &jobs[i]
			if at, ok := next(j, zone, after); ok && j.Enabled {
				queue = append(queue, Fire{j, at})
			}
		}
		slices.SortStableFunc(queue, compareFires)
		for len(queue) > 0 {
			f := queue[0]
			if !yield(f) {
				return
			}
			queue = queue[1:]
			if at, ok := next(f.Job, zone, f.At); ok {
				f.At = at
				i, _ := slices.BinarySearchFunc(queue, f, compareFires)
				queue = slices.Insert(queue, i, f)
			}
		}
	}
}

func compareFires(a, b Fire) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job.Path, b.Job.Path))
}

func next(j *job.Job, zone *time.Location, after time.Time) (time.Time, bool) {
	if j.Kind == job.Reminder {
		return j.RunAt.In(zone), j.RunAt.After(after)
	}
	return j.Schedule.Next(after, j.Zone(zone))
}

// Past is what the fires of a job were like so far.
type Past struct {
	Runs int           // that reached an end of their own
	Time time.Duration // that half of them took at most
	Cost float64       // USD, of one fire on average; fires whose gate was closed and those that were skipped count as 0
}

// Bucket is the budget of pings, as far as a forecast goes: it gains a token at each interval.
type Bucket struct {
	Capacity, Available float64
	Every               time.Duration
}

// outlook is a fire to come and what is to be said of it.
type outlook struct {
	Fire
	Cost  float64  // USD, as in the past; 0 when it has none
	Pings int      // whole pings left after it, if every run that may ping does
	Notes []string // what may surprise
}

// herd is how many jobs at one minute are worth a word.
const herd = 5

// Forecast looks at fires in their order. past is by job id.
func Forecast(fires []Fire, past map[string]Past, bucket Bucket, now time.Time) []outlook {
	list := make([]outlook, len(fires))
	following := map[string]time.Time{}
	for i := len(fires) - 1; i >= 0; i-- {
		f := fires[i]
		list[i] = outlook{Fire: f, Cost: past[f.Job.ID].Cost}
		then, known := following[f.Job.ID]
		if !known {
			then, known = next(f.Job, f.At.Location(), f.At)
		}
		if known {
			list[i].Notes = overlap(past[f.Job.ID], then.Sub(f.At))
		}
		following[f.Job.ID] = f.At
	}
	last := now
	for i := range list {
		o := &list[i]
		bucket.pass(o.At.Sub(last))
		last = o.At
		if o.Job.Background && o.Job.AllowPing && !o.Job.Plain && bucket.Available >= 1 {
			bucket.Available--
		}
		o.Pings = int(bucket.Available)
		o.Notes = append(o.Notes, clockChange(o.Fire)...)
	}
	markHerds(list)
	return list
}

func (b *Bucket) pass(d time.Duration) {
	if b.Every > 0 && d > 0 {
		b.Available = min(b.Capacity, b.Available+float64(d)/float64(b.Every))
	}
}

// overlap reports whether the job is likely to run still when it is due again.
func overlap(p Past, until time.Duration) []string {
	if p.Runs == 0 || p.Time < until {
		return nil
	}
	return []string{fmt.Sprintf("usually takes %s; the next fire would be skipped", job.FormatDuration(p.Time.Round(time.Second)))}
}

// clockChange says that the clock changes in the night before the day, or in the morning. (Noon is never skipped.)
func clockChange(f Fire) []string {
	year, month, day := f.At.Date()
	_, before := time.Date(year, month, day-1, 12, 0, 0, 0, f.At.Location()).Zone()
	name, now := time.Date(year, month, day, 12, 0, 0, 0, f.At.Location()).Zone()
	if before == now {
		return nil
	}
	return []string{"the clock changes on that day, to " + name}
}

// markHerds notes, at the first of them, that many jobs fire in one minute.
func markHerds(list []outlook) {
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n].At.Truncate(time.Minute).Equal(list[i].At.Truncate(time.Minute)) {
			n++
		}
		if n >= herd {
			list[i].Notes = append(list[i].Notes, fmt.Sprintf("%d jobs in this minute", n))
		}
		i += n
	}
}
