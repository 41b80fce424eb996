package fire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Reports reports to the owner what keeps jobs from running.
type Reports struct{ r *run.Runner }

// BadFiles reports each job file that cannot be used, and each that can be used again.
func (t Reports) BadFiles(ctx context.Context, faults yamldoc.Faults) {
	if len(faults) > 0 || !t.r.Notices.Empty() {
		t.r.Warn(t.badFiles(ctx, faults, nil))
	}
}

// badFiles is BadFiles. It warns on standard error only when it also notifies the owner, because cron would mail a warning at
// every fire. own are the faults of the job itself, which are returned as an error anyway.
func (t Reports) badFiles(ctx context.Context, faults, own yamldoc.Faults) error {
	var found []notify.Cause
	first := map[string]*yamldoc.Fault{} // only the first fault of a file is reported
	for _, fault := range faults {
		if c := t.causeOf(fault); first[c.Key()] == nil {
			first[c.Key()] = fault
			found = append(found, c)
		}
	}
	book := t.r.Notify()
	told, err := book.OpenFiles(ctx, found)
	for _, key := range told {
		if !slices.Contains(own, first[key]) {
			t.r.Disk.Warn(first[key].Error())
		}
	}
	return errors.Join(err, book.CloseFiles(ctx, func(key string) bool { return first[key] != nil }, t.r.Home))
}

// causeOf returns the cause of an invalid job file.
func (t Reports) causeOf(fault *yamldoc.Fault) notify.Cause {
	return notify.BadFile(t.r.Home.Relative(fault.File), fault.Error())
}

// MissedByFile adds the slots that were missed while a job's file was invalid to the cause of that file.
func (t Reports) MissedByFile(ctx context.Context, fault *yamldoc.Fault, job string, n int) error {
	c := t.causeOf(fault)
	c.Jobs = []notify.Affected{{ID: job, Name: t.labelOf(job), Count: notice.Count{Missed: n}}}
	_, err := t.r.Notify().Open(ctx, c)
	return err
}

// beforeFire reports what is wrong with files, and what no longer is, before a job is fired. own are the faults of the job itself. It reads
// once whether there is any cause that may be over.
func (t Reports) beforeFire(ctx context.Context, faults, own yamldoc.Faults) {
	none := t.r.Notices.Empty()
	if len(faults) > 0 || !none {
		t.r.Warn(t.badFiles(ctx, faults, own))
	}
	t.r.Warn(t.policy(ctx, none))
}

// policy reports that tool-policy.yaml waits for approval; none says that no cause is open. It does not report errors of the file or the
// approvals: every run does.
func (t Reports) policy(ctx context.Context, none bool) error {
	extra, err := t.r.Approvals.Policy()
	if err != nil {
		return nil //nolint:nilerr // permit returns the error
	}
	c := notify.Cause{
		Kind: notify.Approval, Subject: approval.PolicyName, Name: approval.PolicyName,
		Text:   approval.PolicyName + " differs from what you approved, so it gives no tools",
		Remedy: "to see the changes and approve them: `ollim approve " + approval.PolicyName + "`",
	}
	if !extra.Waits && none {
		return nil
	}
	if !extra.Waits {
		return t.r.Notify().Close(ctx, c.Key(), "gives its tools again")
	}
	told, err := t.r.Notify().Open(ctx, c)
	if told {
		t.r.Disk.Warn(c.Text + "; " + c.Remedy)
	}
	return err
}

// failure notifies the owner of the cause of a run's failure.
func (t Reports) failure(ctx context.Context, record runlog.Record, what string) {
	_, err := t.r.Notify().Open(ctx, notify.Failure(record, what, t.r.Home))
	t.r.Warn(err)
}

// leftover reports a process that keeps the lock of a run that has ended.
func (t Reports) leftover(ctx context.Context, record runlog.Record, left *runlog.Leftover) {
	_, err := t.r.Notify().Open(ctx, notify.Cause{
		Kind: notify.Leftover, Subject: left.Run, Name: record.Label(), Run: record.ID,
		Text:   fmt.Sprintf("%s cannot run: %s. If you end that process, the next fire runs", record.Label(), left),
		Remedy: fmt.Sprintf("`kill %d`", left.Process.PID),
		Jobs:   []notify.Affected{{ID: record.Job, Name: record.Label()}},
	})
	t.r.Warn(err)
}

// missed reports a slot that was missed because other runs had reserved the rest of a limit.
func (t Reports) missed(ctx context.Context, id string, at time.Time, reason string) error {
	label := t.labelOf(id)
	return t.tell(ctx, notify.Cause{
		Kind: notify.Reserved, Subject: "spend", Name: "What other runs have reserved",
		Text: fmt.Sprintf("%s did not run at %s: for 15 minutes other runs had reserved the rest of the spending limit (%s)",
			label, at.In(t.r.Zone).Format("2006-01-02 15:04"), reason),
		Remedy: "`ollim status` shows the limits; let the jobs fire at different times: `ollim schedule list`",
		Jobs:   []notify.Affected{{ID: id, Name: label, Count: notice.Count{Missed: 1}}},
	})
}

// tell opens a cause. A message that is kept and cannot be sent now is a warning: it is sent later.
func (t Reports) tell(ctx context.Context, c notify.Cause) error {
	told, err := t.r.Notify().Open(ctx, c)
	if told {
		t.r.Warn(err)
		return nil
	}
	return err
}

// gone reports webhooks whose events wait but whose file is gone. It reports none while a job file cannot be read, which may be
// theirs.
func (t Reports) gone(ctx context.Context, files job.Set, waiting map[string]inbox.Entry) {
	if len(files.Faults) > 0 {
		return
	}
	for _, hook := range slices.Sorted(maps.Keys(waiting)) {
		if _, known := files.Only(job.Webhook).ByID(hook); !known {
			_, err := t.r.Notify().Open(ctx, notify.Cause{
				Kind: notify.Gone, Subject: hook, Name: "The webhook " + hook,
				Text: fmt.Sprintf("Accepted events of the webhook %s wait, but its file no longer exists. They run if a file with this id is added; "+
					"otherwise they are deleted when they are older than keep.runs", hook),
				Remedy: "`ollim status` shows them",
			})
			t.r.Warn(err)
		}
	}
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
