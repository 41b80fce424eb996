package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/schedule/installer"
	"github.com/ollim/ollim/internal/state/job"
)

// pollRuns is how often the process that starts waiting slots looks whether a run that it did not start has ended, and whether a tick has
// added slots.
const pollRuns = 200 * time.Millisecond

// runWaiting starts the slots that ticks have put off, the oldest first, while fewer fires than limits.parallel are in progress. It returns
// when none waits, or if another process does the same. With wait it waits for its fires as well, starts none from installer.TickPasses on, and
// when ctx has ended, it asks them to end. What it has not started goes on waiting.
func runWaiting(ctx context.Context, d *deps, wait bool) error {
	h, err := d.Home()
	if err != nil {
		return err
	}
	guard, err := lock.TryGuard(h.Dir.Lock("waiting"))
	if errors.Is(err, lock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer guard.Release()
	w := waiter{starter: starter{d: d, home: h}, ended: make(chan string), own: map[string]process.ID{}, tried: map[tick.Waiting]bool{}}
	err = w.work(ctx, wait)
	if wait {
		w.finish(ctx)
	}
	return err
}

// work starts slots until none waits.
func (w *waiter) work(ctx context.Context, wait bool) error {
	now := w.starter.d.Now
	last := now().Add(installer.TickPasses)
	for ctx.Err() == nil {
		if err := w.look(); err != nil {
			return err // the next tick starts another such process
		}
		next, left := w.next()
		if wait && !now().Before(last) {
			return nil // the next tick starts another such process
		}
		switch {
		case left == 0 && (!wait || len(w.own) == 0):
			return nil
		case next == nil || w.running() >= w.most:
			w.rest(ctx)
		default:
			if err := w.fire(*next); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// finish waits until the fires of this process have ended, and when ctx has ended, asks them to. A fire that has not claimed its slot yet
// leaves it waiting.
func (w *waiter) finish(ctx context.Context) {
	stop := ctx.Done()
	for len(w.own) > 0 {
		select {
		case id := <-w.ended:
			delete(w.own, id)
		case <-stop:
			stop = nil
			for _, id := range w.own {
				_ = id.Signal(syscall.SIGTERM) // one that has just ended needs none
			}
		}
	}
}

// waiter starts slots that have waited.
type waiter struct {
	starter starter
	ended   chan string           // ids of jobs whose fire has ended
	own     map[string]process.ID // fires of this process that are in progress, by job
	tried   map[tick.Waiting]bool // slots that were started since queue was read

	looked time.Time     // when the next two lines were true
	every  time.Duration // how long they are taken to be so
	file   os.FileInfo   // of the slots that wait
	others int           // routines that others run

	queue []tick.Waiting // what waits, oldest first; those that were started or have a run are removed from the front
	jobs  []job.Job
	most  int // fires that may be in progress
}

// look reads what waits if a tick has changed it, and with it the settings and the jobs, and counts the runs of others. Both count for
// pollRuns, and for longer if they take long, as with ten thousand routines.
func (w *waiter) look() error {
	begin := w.starter.home.Disk.Now()
	if begin.Sub(w.looked) < w.every {
		return nil
	}
	file, err := os.Stat(tick.QueueFile(w.starter.home.Dir))
	if err != nil {
		return err
	}
	if w.file == nil || !os.SameFile(w.file, file) {
		if err := w.read(); err != nil {
			return err
		}
		w.file = file
	}
	own := map[string]bool{}
	for id := range w.own {
		own[id] = true
	}
	w.others, w.looked = tick.Running(w.starter.home.Dir.JobLock, w.jobs, own), w.starter.home.Disk.Now()
	w.every = max(pollRuns, 10*w.looked.Sub(begin))
	return nil
}

func (w *waiter) read() error {
	h, err := w.starter.d.Home()
	if err != nil {
		return err
	}
	load := h.Jobs.Load
	if h.Config.Limits.Parallel > 0 { // so the engines of the jobs do not matter
		load = h.Jobs.Outline
	}
	files, err := load()
	if err != nil {
		return err
	}
	w.starter.home, w.most, w.jobs = h, h.Parallel(files.Jobs), nil
	for _, j := range files.Jobs {
		w.jobs = append(w.jobs, job.Job{Kind: j.Kind, ID: j.ID}) // this process may live for hours
	}
	clear(w.tried) // the fire of a slot that waits again gave up, as when the claim command failed
	w.queue, err = tick.Queued(h.Disk, h.Dir)
	return err
}

// next returns the oldest slot that can be started now, nil if there is none, and how many are left at most. The second slot of a routine
// waits for the run of the first, because a run that is in progress would have it skipped.
func (w *waiter) next() (next *tick.Waiting, left int) {
	slots := w.starter.home.Firer().Slots
	w.queue = slices.DeleteFunc(w.queue, func(s tick.Waiting) bool {
		if next != nil {
			return false
		}
		if w.tried[s] || !slots.Unanswered(s.Job, s.Slot) {
			return true
		}
		if _, runs := w.own[s.Job]; !runs && lock.Free(w.starter.home.Dir.JobLock(s.Job)) {
			next = &s
		}
		return false
	})
	return next, len(w.queue)
}

// running counts the fires in progress: those of this process, and the routines that others run.
func (w *waiter) running() int { return len(w.own) + w.others }

func (w *waiter) fire(s tick.Waiting) error {
	w.tried[s] = true
	w.starter.ended = func() { w.ended <- s.Job }
	id, err := w.starter.begin("fire", "--scheduled", "--slot", s.Slot.Format(time.RFC3339), "--", s.Job)
	if err == nil {
		w.own[s.Job] = id
	}
	return err
}

// rest waits until a fire has ended, or others may have changed something.
func (w *waiter) rest(ctx context.Context) {
	select {
	case id := <-w.ended:
		delete(w.own, id)
	case <-time.After(pollRuns):
	case <-ctx.Done():
	}
}
