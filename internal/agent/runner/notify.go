package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// sendBody sends the text of the task itself.
func (w *work) sendBody(ctx context.Context) error {
	in, err := w.spec.Origin.Prepare(ctx, w.tools, w.spec.Input)
	if err != nil {
		return err
	}
	text, until := in.Task.Body, time.Time{}
	if late := w.r.lateness(w.run.Scheduled); late != "" {
		text += "\n" + late
	}
	if now := w.r.Disk.Now().In(w.r.Zone); w.run.Scheduled != nil && now.Sub(*w.run.Scheduled) > hourLate && w.r.Settings.Quiet.Contains(now) {
		until = w.r.Settings.Quiet.End(now) // it is more than an hour late
	}
	return w.r.Mail().Tell(ctx, w.spec.Sender, w.run, text, until)
}

// reportLeftover reports a process that keeps the lock of a run that has ended.
func (t Reports) leftover(ctx context.Context, record runlog.Record, left *runlog.Leftover) {
	_, err := t.r.Notify().Open(ctx, notify.Cause{
		Kind: notify.Leftover, Subject: left.Run, Name: record.Label(), Run: record.ID,
		Text:   fmt.Sprintf("%s cannot run: %s. If you end that process, the next fire runs", record.Label(), left),
		Remedy: fmt.Sprintf("`kill %d`", left.Process.PID),
		Jobs:   []notify.Affected{{ID: record.Job, Name: record.Label()}},
	})
	t.r.warn(err)
}

// reportMissed reports a slot that was missed because other runs had reserved the rest of a limit.
func (t Reports) missed(ctx context.Context, id string, at time.Time, reason string) error {
	label := t.labelOf(id)
	_, err := t.r.Notify().Open(ctx, notify.Cause{
		Kind: notify.Reserved, Subject: "spend", Name: "What other runs have reserved",
		Text: fmt.Sprintf("%s did not run at %s: for 15 minutes other runs had reserved the rest of the spending limit (%s)",
			label, at.In(t.r.Zone).Format("2006-01-02 15:04"), reason),
		Remedy: "`ollim status` shows the limits; let the jobs fire at different times: `ollim schedule list`",
		Jobs:   []notify.Affected{{ID: id, Name: label, Count: notice.Count{Missed: 1}}},
	})
	return err
}

// labelOf returns the label of a job, or its id if the job is unknown.
func (t Reports) labelOf(id string) string {
	if files, err := t.r.Jobs.Outline(); err == nil {
		if j, known := files.ByID(id); known {
			return j.Label()
		}
	}
	return id
}

// flushLimit bounds the time for sending messages of earlier runs, so that they do not hold up a scheduler.
const flushLimit = time.Minute

// flush sends what waits in the outbox. The caller has released the job's lock: a dead mail server must not keep a job from running.
func (b Firer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	b.r.warn(b.r.Notify().Sweep(ctx))
	if _, err := b.r.Outbox.Flush(ctx); err != nil && ctx.Err() == nil {
		b.r.warn(err)
	}
}

// unavailable returns the text of a reminder that is delivered because no agent could act on it.
func unavailable(body string) string { return "(agent unavailable) " + body }

// unreported returns the update that replaces a missing report of an agent.
func unreported(label string) string {
	return fmt.Sprintf("%s ran but did not report what it did.", label)
}

// reportServers reports the MCP servers that the run could not use: on standard error if the owner waits for the answer, else by a
// notification. The cause of a server that the run has used is closed.
func (w *work) reportServers(ctx context.Context) {
	failed, err := w.run.FailedServers()
	w.r.warn(err)
	bad := map[string]bool{}
	for _, e := range failed {
		bad[e.Tool] = true
		if w.spec.Policy.Awaited {
			w.r.warn(fmt.Errorf("MCP server %s: %s", e.Tool, e.Text))
			continue
		}
		_, err := w.r.Notify().Open(ctx, notify.Cause{
			Kind: notify.Server, Subject: e.Tool, Name: "The MCP server " + e.Tool, Run: w.run.ID,
			Text:   fmt.Sprintf("%s: the MCP server %s could not be used: %s", w.run.Label(), e.Tool, e.Text),
			Remedy: "`ollim doctor` looks at the servers; correct mcp-servers in config.yaml",
			Jobs:   []notify.Affected{{ID: w.run.Job, Name: w.run.Label(), Count: notice.Count{Failed: 1}}},
		})
		w.r.warn(err)
	}
	if w.r.Notices.Empty() {
		return
	}
	answered, err := w.run.Answered() // a server that the run did not use may not have been started
	w.r.warn(err)
	for _, server := range policy.Servers(answered) {
		if !bad[server] {
			w.r.warn(w.r.Notify().Close(ctx, notice.Key(string(notify.Server), server), ""))
		}
	}
}

// release calls the job's monitor, and sends what waits in the outbox. It runs after the job's lock is released, so that it does not hold
// up the next fire. tick repeats a call that fails.
func (f *fire) release(ctx context.Context) {
	if f.job.Heartbeat != "" {
		f.r.warn(Monitors{f.r}.callOwed(ctx, func(job string, _ runlog.Record) bool { return job == f.job.ID }))
	}
	NewFirer(f.r).flush(ctx)
}

// ownCall is how long after the end of a run its own process may still be calling the monitor.
const ownCall = 2 * heartbeat.Limit

// CallHeartbeats makes the calls to monitors that ended processes did not make, and drops those that are too late.
func (m Monitors) CallOwed(ctx context.Context) error {
	return m.callOwed(ctx, func(_ string, record runlog.Record) bool {
		return record.Finished.Add(ownCall).Before(m.r.Disk.Now())
	})
}

// heartbeatLimit is how late a call may be made: a later one would hide that the job has not run since.
const heartbeatLimit = time.Hour

func (m Monitors) callOwed(ctx context.Context, due func(job string, record runlog.Record) bool) error {
	owed, err := m.r.Heartbeats.List()
	if len(owed) == 0 || err != nil {
		return err
	}
	over := heartbeat.Calls{}
	for job, c := range owed {
		switch record, err := m.r.Runs.Load(c.Run); {
		case err != nil, record.Done() && record.Outcome != runlog.OK, m.r.Disk.Now().Sub(c.At) > heartbeatLimit:
			over[job] = c
		case record.Done() && due(job, record) && m.Call(ctx, job, c.URL):
			over[job] = c
		}
	}
	if len(over) == 0 {
		return nil
	}
	return m.r.Heartbeats.Done(ctx, over)
}

// Heartbeat calls the URL of a monitor and reports whether it answered. A failure is reported until a call succeeds, on standard
// error as well.
func (m Monitors) Call(ctx context.Context, caller, url string) bool {
	c := notify.Cause{Kind: notify.Monitor, Subject: caller, Name: "The monitor of " + caller}
	err := heartbeat.Get(ctx, url)
	switch {
	case err == nil:
		m.r.warn(m.r.Notify().Close(ctx, c.Key(), "answers again"))
	case ctx.Err() == nil:
		c.Text, c.Remedy = fmt.Sprintf("The monitor of %s does not answer: %v", caller, err), "check the network and the URL: `ollim doctor`"
		told, openErr := m.r.Notify().Open(ctx, c)
		if m.r.warn(openErr); told {
			m.r.warn(fmt.Errorf("heartbeat of %s: %w", caller, err))
		}
	}
	return err == nil
}
