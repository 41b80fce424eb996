package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// hourLate is the delay after which quiet hours hold a plain reminder back.
const hourLate = time.Hour

// lateness returns a text that says how late something is; "" if it is not late. due is nil if it had no time.
func lateness(due *time.Time, now time.Time) string {
	if !late(due, now) {
		return ""
	}
	return fmt.Sprintf("(late: it was due %s, %s)", due.In(now.Location()).Format("Mon 2 Jan 3:04 PM"), prompt.Ago(now.Sub(*due)))
}

// sendBody sends the text of the task itself.
func (w *work) sendBody(ctx context.Context) error {
	in, err := w.spec.Origin.Prepare(ctx, w.tools, w.spec.Input)
	if err != nil {
		return err
	}
	text, now := in.Task.Body, w.r.Disk.Now().In(w.r.Zone)
	if late := lateness(w.run.Scheduled, now); late != "" {
		text += "\n" + late
	}
	return w.r.Mail().Tell(ctx, w.spec.Sender, w.run, text, heldUntil(w.run.Scheduled, now, w.r.Settings.Quiet))
}

// heldUntil returns when the text of a plain reminder may be sent, which was due at an instant: after the quiet hours if it is more than an
// hour late; the zero time is at once. due is nil if it had no time.
func heldUntil(due *time.Time, now time.Time, quiet timeparse.Span) time.Time {
	if due != nil && now.Sub(*due) > hourLate && quiet.Contains(now) {
		return quiet.End(now)
	}
	return time.Time{}
}

// deliver sends the owner the final text if the policy says so. A text that cannot be delivered waits in the outbox. A failed delivery
// never changes the outcome.
func (w *work) deliver(ctx context.Context) {
	if !w.spec.Policy.Deliver || w.run.Text == "" {
		return
	}
	text := w.run.Text
	if standing, err := w.run.Standing(); err == nil && standing.Popped > 0 {
		text += "\n\n" + prompt.CatchingUp // at the end, because a notification shows the beginning of the text
	}
	_, err := w.r.Mail().Post(ctx, w.spec.Sender, w.run, outbox.Text, text, time.Time{})
	w.r.Warn(err)
}

// report tells the owner about faults that the run has found, and about faults that are over.
func (w *work) report(ctx context.Context, cause error) {
	none := w.r.Notices.Empty() // a cause that the run itself opens is not over
	w.reportServers(ctx, none)
	if !none {
		w.recovered(ctx)
	}
	if !none || w.run.Fallback != "" {
		models{w.r, w.spec, w.run}.report(ctx)
	}
	w.spec.Origin.Report(ctx, w.run, cause)
}

// reportServers reports the MCP servers that the run could not use: on standard error if the owner waits for the answer, else by a
// notification. The cause of a server that the run has used is closed; none says that there was no cause.
func (w *work) reportServers(ctx context.Context, none bool) {
	failed, err := w.run.FailedServers()
	answered, answeredErr := w.run.Answered() // a server that the run did not use may not have been started
	w.r.Warn(cmp.Or(err, answeredErr))
	bad := map[string]bool{}
	for _, e := range failed {
		bad[e.Tool] = true
		if w.spec.Policy.Awaited {
			w.r.Warn(fmt.Errorf("MCP server %s: %s", e.Tool, e.Text))
			continue
		}
		_, err := w.r.Notify().Open(ctx, notify.Cause{
			Kind: notify.Server, Subject: e.Tool, Name: "The MCP server " + e.Tool, Run: w.run.ID,
			Text:   fmt.Sprintf("%s: the MCP server %s could not be used: %s", w.run.Label(), e.Tool, e.Text),
			Remedy: "`ollim doctor` looks at the servers; correct mcp-servers in config.yaml",
			Jobs:   []notify.Affected{{ID: w.run.Job, Name: w.run.Label(), Count: notice.Count{Failed: 1}}},
		})
		w.r.Warn(err)
	}
	if none {
		return
	}
	for _, server := range policy.Servers(answered) {
		if !bad[server] {
			w.r.Warn(w.r.Notify().Close(ctx, notice.Key(string(notify.Server), server), ""))
		}
	}
}

// recovered closes the causes that are over according to a run which ended ok, unreported or waiting. If the engine, its service or a
// limit caused a failure after the run began, that cause stays open, because the next run may be refused too.
func (w *work) recovered(ctx context.Context) {
	if w.run.Outcome != runlog.OK && w.run.Outcome != runlog.Unreported && w.run.Outcome != runlog.Waiting {
		return
	}
	book := w.r.Notify()
	open, err := book.OpenCauses()
	w.r.Warn(err)
	for key, e := range open {
		if e.Kind == string(notify.Gone) && e.Subject == w.run.Job {
			w.r.Warn(book.Drop(ctx, key))
		}
		if over, how := isOver(e, w.run.Record, w.spec.Policy.Owner); over {
			w.r.Warn(book.Close(ctx, key, how))
		}
	}
}

// isOver reports whether a cause is over according to a run which ended ok, unreported or waiting, and how it ended if there is a special
// word for it. owner: no limit was in force for the run.
func isOver(e notice.Entry, r runlog.Record, owner bool) (over bool, how string) {
	since := !r.Started.Before(e.Since)
	answered := since && r.Turns > 0
	ofJob := r.Job != "" && e.Subject == r.Job && r.Outcome != runlog.Waiting
	switch notify.Kind(e.Kind) {
	case notify.Service, notify.Key:
		return answered && e.Subject == r.Engine, ""
	case notify.Engine:
		return answered && (e.Subject == r.Engine || e.Subject == "none"), ""
	case notify.Limit, notify.Reserved:
		return since && r.Accounted && !owner, notify.NoLonger
	case notify.Unit:
		return r.Job != "" && (strings.HasSuffix(e.Subject, "-"+r.Job+".service") || strings.HasSuffix(e.Subject, "@"+r.Job+".service")), ""
	case notify.Job, notify.Refused:
		return ofJob, ""
	case notify.Approval:
		return ofJob, "is approved"
	}
	return false, ""
}

// end lets the origin do what follows from the outcome of the run.
func (w *work) end(ctx context.Context, cause error) {
	ctx, stop := w.box.again(ctx)
	defer stop()
	w.spec.Origin.End(ctx, w.tools, cause)
}

// finish finishes the record. It drops the run's question unless the run waits for the answer.
func (w *work) finish(ctx context.Context, cause error) (runlog.Record, error) {
	err := w.run.Finish(w.run.Outcome, w.run.Error)
	if w.run.Outcome != runlog.Waiting {
		w.r.Warn(w.r.Questions.Drop(ctx, w.run.ID))
	}
	return w.run.Record, errors.Join(err, cause)
}
