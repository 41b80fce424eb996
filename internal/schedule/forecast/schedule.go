// Package forecast computes the future fires of all jobs, in one order.
package forecast

import (
	"cmp"
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
