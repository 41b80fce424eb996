package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

var (
	errTimeout    = errors.New("timeout")
	errUnreported = errors.New("the agent did not report")
)

// nudges is how often an agent is reminded of a report before its run ends without one.
const nudges = 2

// holdToReport reminds the agent of a report that it owes. If it still makes none, and one was always wanted, the main
// session is told so instead.
func (f *Firer) holdToReport(ctx context.Context, j job.Job, r *runlog.Run, talk *conversation.Talk, request engine.Request) error {
	var dear error
	for dear == nil {
		nudge, err := NextNudge(ctx, r)
		if err != nil {
			return err
		}
		if nudge == "" {
			break
		}
		if err = talk.Remind(ctx, nudge, request); errors.Is(err, engine.ErrMaxCost) {
			dear = err // the work itself is done
		} else if err != nil {
			return err
		}
	}
	standing, err := r.Standing()
	if err != nil || !owes(r, standing) {
		return err
	}
	if j.Update == job.Always {
		err = f.Updates.Add(ctx, prompt.Unreported(j.Label()), r.ID)
	}
	return errors.Join(errUnreported, dear, err)
}

// NextNudge is the reminder that a run is due, noted in its record; "" when it owes nothing, or was reminded often enough.
// The engine's hook and the fire itself both ask here, so that together they make no more than two.
func NextNudge(ctx context.Context, r *runlog.Run) (text string, err error) {
	err = r.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		if !owes(r, s) || s.Nudges >= nudges {
			return runlog.Event{}, errNothingDue
		}
		text = prompt.Nudge(job.UpdateMode(r.Record.Update))
		return runlog.Event{Type: runlog.Nudge, Text: text}, nil
	})
	if errors.Is(err, errNothingDue) {
		err = nil
	}
	return text, err
}

var errNothingDue = errors.New("nothing is due")

func owes(r *runlog.Run, s runlog.Standing) bool {
	return r.Mode != string(job.Foreground) && s.OwesReport(r.Record.Update)
}

// compact does what the agent asked for, unless its turn went wrong: then the session stays whole for whoever looks. The agent's
// next fire reads that a compaction was not carried out.
func (f *Firer) compact(ctx context.Context, r *runlog.Run, talk *conversation.Talk, request engine.Request, turn error) error {
	if turn != nil && !errors.Is(turn, errUnreported) {
		return nil
	}
	err := talk.Compact(ctx, request)
	if errors.Is(err, engine.ErrMaxCost) { // the work itself is done
		return r.Event(ctx, runlog.Event{Type: runlog.CompactFailed, Text: err.Error()})
	}
	return err
}

// stopped gives a stop its reason: the engine only sees that its context ended.
func stopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.Canceled) && !errors.Is(cause, errTimeout) {
		return cause // somebody said why
	}
	return errors.Join(cause, err)
}

// conclude decides how the run ended, and says so in its events and record. The record is not finished yet.
func (f *Firer) conclude(ctx context.Context, j job.Job, r *runlog.Run, cause error) {
	outcome := outcomeOf(cause)
	reason := reasonOf(j, outcome, cause)
	if outcome == runlog.Interrupted && f.Runs.StopAsked(r.ID) {
		reason = "stopped by ollim stop"
	}
	if outcome == runlog.Gated {
		reason = ""
	} else if cause != nil {
		f.warn(r.Event(ctx, runlog.Event{Type: runlog.ErrorEvent, Text: reason}))
	}
	f.warn(r.Conclude(outcome, reason))
}

func outcomeOf(cause error) runlog.Outcome {
	switch {
	case cause == nil:
		return runlog.OK
	case errors.Is(cause, errTimeout):
		return runlog.Timeout
	case errors.Is(cause, context.Canceled):
		return runlog.Interrupted
	case errors.Is(cause, ErrPaused):
		return runlog.Paused
	case errors.Is(cause, ErrRefused):
		return runlog.Refused
	case errors.Is(cause, errUnreported):
		return runlog.Unreported
	case errors.Is(cause, errGated):
		return runlog.Gated
	}
	return runlog.Failed
}

func reasonOf(j job.Job, outcome runlog.Outcome, cause error) string {
	switch {
	case cause == nil:
		return ""
	case outcome == runlog.Timeout:
		return fmt.Sprintf("stopped after %s", job.FormatDuration(j.Timeout))
	case outcome == runlog.Interrupted:
		return "stopped by a signal"
	}
	return oneLine(cause)
}

// deliver lets the owner know: the text of a foreground run, a failure, a refusal. What cannot be delivered waits in the
// outbox, and a failed delivery never changes how the run ended.
func (f *Firer) deliver(ctx context.Context, e errand, r *runlog.Run, cause error) {
	j := e.job
	if j.Kind == kindChat || j.Kind == kindSession || j.Kind == job.Ask {
		if r.Outcome == runlog.Refused && !e.options.Owner { // else its exit status and streams say how it ended
			f.tellRefusal(ctx, r.Record, cause)
		}
		return
	}
	switch r.Outcome {
	case runlog.OK, runlog.Unreported:
		f.warn(f.Told.Worked(ctx, j.ID))
		f.warn(f.Told.Forget(ctx, func(key string) bool { return !strings.HasPrefix(key, notice.Refusal(j.ID, "")) }))
	case runlog.Failed, runlog.Timeout:
		if j.Kind != job.Reminder { // see putAway
			f.tellFailure(ctx, r.Record, howItFailed(r.Outcome))
		}
	case runlog.Refused:
		f.tellRefusal(ctx, r.Record, cause)
	}
	if !j.Background && r.Text != "" {
		f.send(ctx, r, outbox.Text, f.answer(r))
	}
}

func howItFailed(outcome runlog.Outcome) string {
	if outcome == runlog.Timeout {
		return "did not finish in time"
	}
	return "failed"
}

// flushLimit bounds the time for messages of earlier runs, which are not worth holding up a scheduler.
const flushLimit = time.Minute

// flush tries what waits in the outbox. The job's lock is free by then: a dead mail server must not keep a job from running.
func (f *Firer) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if _, err := f.Post.Flush(ctx); err != nil && ctx.Err() == nil {
		f.warn(err)
	}
}

func (f *Firer) tellFailure(ctx context.Context, r runlog.Record, what string) {
	count, speak, err := f.Told.Failed(ctx, r.Job)
	f.warn(err)
	if err != nil || !speak {
		return
	}
	f.notify(ctx, r, update.Clean(prompt.Failure(r.Label(), what, r.Error, count)))
}

func (f *Firer) tellRefusal(ctx context.Context, r runlog.Record, cause error) {
	b := &barred{}
	errors.As(cause, &b)
	first, err := f.Told.Once(ctx, cmp.Or(b.key, notice.Refusal(r.Job, r.Error)))
	f.warn(err)
	if err == nil && first {
		f.warn(f.Updates.Add(ctx, cmp.Or(b.text, prompt.RefusedJob(r.Label(), r.Error)), r.ID))
	}
}

// answer is the text of a foreground run as the owner sees it.
func (f *Firer) answer(r *runlog.Run) string {
	if standing, err := r.Standing(); err == nil && standing.Popped > 0 {
		return prompt.CatchingUp + "\n\n" + r.Text
	}
	return r.Text
}

// send hands a message of the fire itself to the post.
func (f *Firer) send(ctx context.Context, r *runlog.Run, kind outbox.Kind, text string) {
	_, err := f.post(ctx, r, kind, text)
	f.warn(err)
}

// post numbers a message and sends it. The number is on disk before the first attempt, so that no later message of the run
// has the same id, wherever this process is killed. The fate is "" when the message did not reach the outbox.
func (f *Firer) post(ctx context.Context, r *runlog.Run, kind outbox.Kind, text string) (outbox.Fate, error) {
	number := 0
	err := r.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		number = s.Messages + 1
		return runlog.Event{Type: runlog.Message, Tool: string(kind)}, nil
	})
	if err != nil {
		return "", err
	}
	fate, err := f.Post.Send(ctx, outbox.Message{
		ID: fmt.Sprintf("%s.%d", r.ID, number), Run: r.ID, Job: r.Job, Label: r.Label(),
		Kind: kind, Text: text, Created: f.Disk.Now(),
	})
	return fate, errors.Join(err, r.Event(ctx, runlog.Event{Type: runlog.Delivered, Text: string(fate), Tool: string(kind)}))
}

func (f *Firer) warn(err error) {
	if err != nil {
		f.Disk.Warn(oneLine(err))
	}
}
