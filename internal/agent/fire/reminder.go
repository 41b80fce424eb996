package fire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// errSpent means that both attempts of a reminder were cut off.
var errSpent = errors.New("it was tried twice, and cut off both times")

// claimFile marks a reminder's file for this attempt, so that after a crash the next process knows which attempts were made.
func (f *fire) claimFile() error {
	if f.job.Kind != job.Reminder || f.job.Plain && f.job.Attempt() != job.Waiting {
		return nil
	}
	if f.job.Attempt() == job.Second {
		return errSpent
	}
	claimed, err := f.r.Jobs.Claim(f.job)
	f.job = claimed
	return err
}

// concluded reports whether there is nothing to run. If the last run succeeded and was killed before it put the file away, it ends the
// reminder, and the work is not done again.
func (f *fire) concluded(ctx context.Context) bool {
	last := f.previous
	if f.job.Kind != job.Reminder || f.job.Attempt() == job.Waiting || last.Scheduled == nil || !last.Scheduled.Equal(f.job.RunAt) {
		return false // the last run of that id was of another reminder
	}
	switch last.Outcome {
	case runlog.Waiting: // the run continues with the answer
		return true
	case runlog.Interrupted:
		if standing, err := f.r.Runs.Standing(last.ID); err == nil {
			f.retried = standing.Retries
		}
		return false
	case runlog.Failed, runlog.Timeout:
		if !last.Unverified() {
			return false
		}
		fallthrough
	case runlog.OK, runlog.Unreported, runlog.Gated, runlog.Expired:
		r, err := f.r.Runs.At(last.ID)
		if err == nil {
			ending{f.r, f.job}.putAway(ctx, r, nil)
		}
		return err == nil
	}
	return false
}

// ending says how a reminder is put away when its run has ended.
type ending struct {
	r   *run.Runner
	job job.Job
}

// putAway ends a reminder. The file is deleted after a success, and the follow-up written if the agent asked for one. After the first
// failure the file stays for another attempt, which tick starts; after the second the text is delivered without an agent. A reminder
// that was not tried goes back to where it was.
func (e ending) putAway(ctx context.Context, r *runlog.Run, cause error) {
	j := e.job
	if j.Kind != job.Reminder || errors.Is(cause, job.ErrGone) { // the reminder was cancelled just before
		return
	}
	e.r.Warn(r.Update(func(*runlog.Record) {})) // the outcome is on disk before the file goes, so that a kill in between does not hide it
	switch r.Outcome {
	case runlog.Refused, runlog.Paused, runlog.Skipped: // it was not tried
		e.r.Warn(e.r.Jobs.GiveBack(j, r.Path))
		return
	case runlog.Failed, runlog.Timeout, runlog.Interrupted:
		if r.Unverified() { // the agent did its work, and the owner was told of the refusal
			break
		}
		over, err := e.giveUp(ctx, &j, r)
		e.r.Warn(err)
		if !over || err != nil {
			return
		}
	}
	e.r.Warn(e.followUp(ctx, j, r))
	e.r.Warn(store.Remove(j.Path))
}

// giveUp delivers the text of a reminder without an agent, unless another attempt is to come. An attempt that failed before the
// file was claimed, because there was no engine, counts too.
func (e ending) giveUp(ctx context.Context, j *job.Job, r *runlog.Run) (over bool, err error) {
	if j.Plain {
		return true, e.r.Mail().Tell(ctx, e.r.Outbox, r, j.Body, time.Time{})
	}
	if j.Path == r.Path && j.Attempt() != job.Second && r.Outcome == runlog.Failed {
		if *j, err = e.r.Jobs.Claim(*j); err != nil {
			return false, err
		}
	}
	if j.Attempt() != job.Second {
		return false, nil
	}
	return true, e.r.Mail().Tell(ctx, e.r.Outbox, r, unavailable(j.Body), time.Time{})
}

// followUp writes the next reminder of a chain, with all that this one was approved to do.
func (e ending) followUp(ctx context.Context, j job.Job, r *runlog.Run) error {
	standing, err := r.Standing()
	if err != nil || standing.FollowUp.IsZero() {
		return err
	}
	sum := sha256.Sum256([]byte(j.ChainParent + "\n" + strconv.Itoa(j.ChainDepth+1))) // the same after a crash: the chain continues once
	child := j.FollowUp(fmt.Sprintf("%x", sum[:4]), standing.FollowUp.In(e.r.Zone))
	files, err := e.r.Jobs.Outline()
	if err != nil {
		return err
	}
	if _, err := files.Find(child.ID); err == nil {
		return nil // written before a crash
	}
	subject, widened, err := e.r.Approvals.Of(child)
	if err == nil && widened {
		err = e.r.Approvals.Approve(ctx, subject, r.ID)
	}
	e.r.Warn(err) // the new reminder will wait for the owner's approval
	e.r.Warn(e.r.Changes.Hand(ctx, changed.Job{Kind: r.Kind, ID: j.ID}, changed.Job{Kind: r.Kind, ID: child.ID}))
	_, err = e.r.Jobs.Create(child, "")
	return err
}

// unavailable returns the text of a reminder that is delivered because no agent could act on it.
func unavailable(body string) string { return "(agent unavailable) " + body }
