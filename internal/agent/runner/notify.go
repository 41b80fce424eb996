package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/update"
)

// post numbers a message of a run and sends it. The number is on disk before the first attempt, so that no later message of the run
// has the same id, wherever this process is killed. The fate is "" if the message did not reach the outbox.
func (r *Runner) post(ctx context.Context, sender outbox.Sender, run *runlog.Run, kind outbox.Kind, text string) (outbox.Fate, error) {
	number, said := 0, text
	if kind == outbox.Text { // the record has it
		said = ""
	}
	err := run.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		number = s.Messages + 1
		return runlog.Event{Type: runlog.Message, Tool: string(kind), Text: said}, nil
	})
	if err != nil {
		return "", err
	}
	m := outbox.Message{
		ID: session.MessageID(run.ID, number), Run: run.ID, Job: run.Job, Label: run.Label(),
		Kind: kind, Text: text, Created: r.Disk.Now(),
	}
	if kind == outbox.Text {
		r.warn(tools.Remember(ctx, r.Sessions, run, m.ID))
	}
	receipt, err := sender.Send(ctx, m)
	err = errors.Join(err, r.Sessions.Received(ctx, m.ID, receipt.Outside...))
	return receipt.Fate, errors.Join(err, run.Event(ctx, runlog.Event{Type: runlog.Delivered, Text: string(receipt.Fate), Tool: string(kind)}))
}

// sendBody sends the text of the task itself.
func (w *work) sendBody(ctx context.Context) error {
	in, err := w.spec.Origin.Prepare(ctx, w.tools, w.spec.Input)
	if err != nil {
		return err
	}
	return w.tell(ctx, w.spec.Sender, w.run, in.Task.Body)
}

// tell delivers a text to the owner or, if that is not possible, adds a pending update. An error means that both failed.
func (r *Runner) tell(ctx context.Context, sender outbox.Sender, run *runlog.Run, text string) error {
	text = update.Clean(text)
	if !sender.Configured() {
		return r.Updates.Add(ctx, text, run.ID)
	}
	fate, err := r.post(ctx, sender, run, outbox.Ping, text)
	r.warn(err)
	if fate == "" || fate == outbox.Refused {
		return r.Updates.Add(ctx, text, run.ID)
	}
	return nil
}

// notify sends the owner a message about a run, or leaves it as a pending update where no delivery is configured.
func (r *Runner) notify(ctx context.Context, record runlog.Record, text string) {
	if !r.Outbox.Configured() {
		r.warn(r.Updates.Add(ctx, text, record.ID))
		return
	}
	run, err := r.Runs.At(record.ID)
	if err == nil {
		_, err = r.post(ctx, r.Outbox, run, outbox.Failure, text)
	}
	r.warn(err)
}

// reportFailure reports a failed run, unless its job has failed so often that the owner knows.
func (r *Runner) reportFailure(ctx context.Context, record runlog.Record, what string) {
	count, speak, err := r.Notices.Failed(ctx, record.Job)
	r.warn(err)
	if err == nil && speak {
		r.notify(ctx, record, update.Clean(failure(record.Label(), what, record.Error, count)))
	}
}

// reportRefusal reports a refused run, once for each cause.
func (r *Runner) reportRefusal(ctx context.Context, record runlog.Record, cause error) {
	why := &refusal{}
	errors.As(cause, &why)
	first, err := r.Notices.Once(ctx, cmp.Or(why.key, notice.Refusal(record.Job, record.Error)))
	r.warn(err)
	if err == nil && first {
		r.warn(r.Updates.Add(ctx, cmp.Or(why.text, refusedJob(record.Label(), record.Error)), record.ID))
	}
}

// reportLeftover reports, once, a process that keeps the lock of a run that has ended.
func (r *Runner) reportLeftover(ctx context.Context, record runlog.Record, left *runlog.Leftover) {
	first, err := r.Notices.Once(ctx, "leftover "+left.Run)
	r.warn(err)
	if err == nil && first {
		r.notify(ctx, record, fmt.Sprintf("%s cannot run: %s. If you end that process, the next fire runs.", record.Label(), left))
	}
}

// reportMissed reports a slot that was missed because of a limit, once until the job works again.
func (r *Runner) reportMissed(ctx context.Context, id string, at time.Time, reason string) error {
	first, err := r.Notices.Once(ctx, notice.Refusal(id, "missed"))
	if err != nil || !first {
		return err
	}
	label := id
	if files, err := r.Jobs.Load(); err == nil {
		if j, known := files.ByID(id); known {
			label = j.Label()
		}
	}
	return r.Updates.Add(ctx, fmt.Sprintf("%s did not run at %s: for 15 minutes other runs had reserved the rest of the spending limit (%s)",
		label, at.In(r.Zone).Format("2006-01-02 15:04"), reason), "ollim")
}

// flushLimit bounds the time for messages of earlier runs, which are not worth holding up a scheduler.
const flushLimit = time.Minute

// flush tries what waits in the outbox. The job's lock is free by then: a dead mail server must not keep a job from running.
func (r *Runner) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if _, err := r.Outbox.Flush(ctx); err != nil && ctx.Err() == nil {
		r.warn(err)
	}
}

// failure tells the owner that a job did not do its work. count is how often in a row.
func failure(label, what, reason string, count int) string {
	s := fmt.Sprintf("%s %s", label, what)
	if count > 2 {
		s = fmt.Sprintf("%s %s, now %d times in a row", label, what, count)
	}
	if reason != "" {
		s += ": " + reason
	}
	return s
}

// badFile tells the owner of a job file that cannot be used.
func badFile(fault string) string {
	return fmt.Sprintf("A job file is invalid and cannot run until it is corrected (see `ollim check`): %s", fault)
}

// refusedJob tells the owner of a job that was not allowed to run.
func refusedJob(label, reason string) string {
	return fmt.Sprintf("%s was not run: %s", label, reason)
}

// unavailable is a reminder in its own words, when no agent could be had to act on it.
func unavailable(body string) string { return "(agent unavailable) " + body }

// unreported is the update that stands in for a report which an agent owed and did not make.
func unreported(label string) string {
	return fmt.Sprintf("%s ran but did not report what it did.", label)
}

// reportServers reports the MCP servers that the run could not use: on standard error, where the owner waits for the answer, else as
// an update for the main conversation, each server once a day.
func (w *work) reportServers(ctx context.Context) {
	failed, err := w.run.FailedServers()
	w.warn(err)
	for _, e := range failed {
		if w.spec.Policy.Awaited {
			w.warn(fmt.Errorf("MCP server %s: %s", e.Tool, e.Text))
			continue
		}
		if !w.onceADay(ctx, "mcp "+e.Tool) {
			continue
		}
		text := fmt.Sprintf("%s: the MCP server %s could not be used: %s. It is reported once a day.", w.run.Label(), e.Tool, e.Text)
		w.warn(w.Updates.Add(ctx, text, w.run.ID))
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
const ownCall = 2 * heartbeat.Limit

// CallHeartbeats makes the calls that runs of ended processes owe, and forgets those that come too late.
func (r *Runner) CallHeartbeats(ctx context.Context) error {
	return r.callHeartbeats(ctx, func(_ string, record runlog.Record) bool {
		return record.Finished.Add(ownCall).Before(r.Disk.Now())
	})
}

// heartbeatLimit is how long a call is owed: a later one would hide that the job has not run since.
const heartbeatLimit = time.Hour

func (r *Runner) callHeartbeats(ctx context.Context, due func(job string, record runlog.Record) bool) error {
	owed, err := r.Heartbeats.List()
	if len(owed) == 0 || err != nil {
		return err
	}
	over := map[string]heartbeat.Call{}
	for job, c := range owed {
		switch record, err := r.Runs.Load(c.Run); {
		case err != nil, record.Done() && record.Outcome != runlog.OK, r.Disk.Now().Sub(c.At) > heartbeatLimit:
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
	what, err := notice.Heartbeat+caller, heartbeat.Get(ctx, url)
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
