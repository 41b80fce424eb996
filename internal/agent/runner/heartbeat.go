package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/httpget"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// oweHeartbeat notes that the run owes its job's monitor a call, which is made when the job's lock is free.
func (f *fire) oweHeartbeat(ctx context.Context, run *runlog.Run) {
	if f.job.Heartbeat != "" && f.permitted != nil && run.Outcome == runlog.OK {
		f.warn(f.Heartbeats.Owe(ctx, f.job.ID, run.ID, f.job.Heartbeat))
	}
}

// release does what need not hold up the next fire, when the job's lock is free: it calls the job's monitor, and tries what waits in
// the outbox. A call that fails is made again by tick.
func (f *fire) release(ctx context.Context) {
	if f.job.Heartbeat != "" {
		f.warn(f.callHeartbeats(ctx, func(job string, _ runlog.Record) bool { return job == f.job.ID }))
	}
	f.flush(ctx)
}

// ownCall is how long after the end of a run its own process may still be calling.
const ownCall = 2 * httpget.Limit

// CallHeartbeats makes the calls that runs of ended processes owe, and forgets those that come too late.
func (r *Runner) CallHeartbeats(ctx context.Context) error {
	return r.callHeartbeats(ctx, func(_ string, record runlog.Record) bool {
		return record.Finished.Add(ownCall).Before(r.Disk.Now())
	})
}

func (r *Runner) callHeartbeats(ctx context.Context, due func(job string, record runlog.Record) bool) error {
	owed, err := r.Heartbeats.List()
	if len(owed) == 0 || err != nil {
		return err
	}
	over := map[string]heartbeat.Call{}
	for job, c := range owed {
		switch record, err := r.Runs.Load(c.Run); {
		case err != nil, record.Done() && record.Outcome != runlog.OK, r.Disk.Now().Sub(c.At) > heartbeat.Limit:
			over[job] = c
		case record.Done() && due(job, record) && r.Heartbeat(ctx, job, c.URL):
			over[job] = c
		}
	}
	if len(over) == 0 {
		return nil
	}
	return r.Heartbeats.Done(ctx, over)
}

// Heartbeat calls the URL of a monitor and reports whether it answered. A failure is reported on standard error, once a day for each
// caller, a job or tick, until a call succeeds.
func (r *Runner) Heartbeat(ctx context.Context, caller, url string) bool {
	what, err := notice.Heartbeat+caller, httpget.Call(ctx, url)
	switch {
	case err == nil:
		r.warn(r.Notices.Forget(ctx, func(key string) bool { return !strings.HasPrefix(key, what+" ") }))
	case ctx.Err() == nil && r.onceADay(ctx, what):
		r.warn(fmt.Errorf("heartbeat of %s: %w", caller, err))
	}
	return err == nil
}

// onceADay reports whether something is to be reported for the first time today.
func (r *Runner) onceADay(ctx context.Context, what string) bool {
	key := what + " " + r.Disk.Now().In(r.Zone).Format(time.DateOnly)
	first, err := r.Notices.Once(ctx, key)
	if r.warn(err); !first {
		return false
	}
	r.warn(r.Notices.Forget(ctx, func(old string) bool { return old == key || !strings.HasPrefix(old, what+" ") }))
	return true
}
