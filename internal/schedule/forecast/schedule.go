// Package forecast computes the future fires of all jobs, in one order.
package forecast

import (
	"cmp"
	"container/heap"
	"iter"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

// Fire is one fire to come.
type Fire struct {
	Job *job.Job
	At  time.Time // in the job's own zone
}

// Upcoming yields the fires of the enabled jobs after an instant, earliest first, without end unless no job fires any
// more. zone is that of jobs without one of their own.
func Upcoming(jobs []job.Job, zone *time.Location, after time.Time) iter.Seq[Fire] {
	return func(yield func(Fire) bool) {
		var q queue
		for i := range jobs {
			j := &jobs[i]
			if at, ok := next(j, zone, after); ok && j.Enabled {
				q = append(q, Fire{j, at})
			}
		}
		heap.Init(&q)
		for len(q) > 0 {
			f := q[0]
			if !yield(f) {
				return
			}
			if at, ok := next(f.Job, zone, f.At); ok {
				q[0].At = at
				heap.Fix(&q, 0)
			} else {
				heap.Pop(&q)
			}
		}
	}
}

func next(j *job.Job, zone *time.Location, after time.Time) (time.Time, bool) {
	if j.Kind == job.Reminder {
		return j.RunAt.In(zone), j.RunAt.After(after)
	}
	return j.Schedule.Next(after, j.Zone(zone))
}

// Late reports whether a fire that was to be at an instant is late enough for the run to be informed: by more than two minutes. A zero at,
// of a fire that was never scheduled, is not late.
func Late(at, now time.Time) bool {
	return !at.IsZero() && now.Sub(at) > 2*time.Minute
}

// queue orders fires by time, those of one instant by their jobs' files.
type queue []Fire

func (q queue) Len() int { return len(q) }

func (q queue) Less(a, b int) bool {
	return cmp.Or(q[a].At.Compare(q[b].At), cmp.Compare(q[a].Job.Path, q[b].Job.Path)) < 0
}

func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }

// Push is for heap.Interface; nothing is ever pushed.
func (q *queue) Push(any) {}

// Pop is for heap.Interface.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
