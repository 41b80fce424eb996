package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// conclude decides how the run ended, and notes it in the events and the record, which is not finished yet. It returns the cause of a
// failure; nil also for a run that its gate held back or that waits for an answer.
func (w *work) conclude(ctx context.Context, cause error) error {
	outcome, reason := outcomeOf(cause), ""
	overload := w.overload(cause)
	if overload != nil {
		outcome = runlog.Failed // the service ended the run, not the time limit
	}
	switch {
	case overload != nil && errors.Is(cause, errTimeout):
		reason = fmt.Sprintf("the model service did not answer within %s, the last try: %s", job.FormatDuration(w.spec.Limits.Time), plaintext.OneLine(overload))
		cause = fmt.Errorf("%w: %w", engine.ErrUnavailable, overload)
	case outcome == runlog.Gated, outcome == runlog.Waiting:
		cause = nil
	case outcome == runlog.Timeout:
		reason = fmt.Sprintf("stopped after %s", job.FormatDuration(w.spec.Limits.Time))
	case outcome == runlog.Interrupted && w.run.Withdrawn:
		reason = "stopped by you"
	case outcome == runlog.Interrupted:
		reason = cmp.Or(w.r.Runs.StopReason(w.run.ID), "stopped by a signal")
	case cause != nil:
		reason = plaintext.OneLine(cause)
	}
	if cause != nil {
		w.r.warn(w.run.Event(ctx, runlog.Event{Type: runlog.ErrorEvent, Text: reason}))
	}
	if fault := w.faultOf(cause); fault != "" {
		w.r.warn(w.run.Update(func(r *runlog.Record) { r.Fault = string(fault) }))
	}
	w.r.warn(w.run.Conclude(outcome, reason))
	return cause
}

func outcomeOf(cause error) runlog.Outcome {
	switch {
	case cause == nil:
		return runlog.OK
	case errors.Is(cause, errTimeout):
		return runlog.Timeout
	case errors.Is(cause, context.Canceled):
		return runlog.Interrupted
	case errors.Is(cause, errWaiting):
		return runlog.Waiting
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
	w.r.warn(err)
}

// finish finishes the record. It drops the run's question unless the run waits for the answer.
func (w *work) finish(ctx context.Context, cause error) (runlog.Record, error) {
	err := w.run.Finish(w.run.Outcome, w.run.Error)
	w.r.warn(w.r.Runs.ForgetStop(w.run.ID))
	if w.run.Outcome != runlog.Waiting {
		w.r.warn(w.r.Questions.Drop(ctx, w.run.ID))
	}
	return w.run.Record, errors.Join(err, cause)
}

// Reasons why a run does not take place.
var (
	// ErrRefused: the job may not run as it is written.
	ErrRefused = errors.New("refused")
	// ErrPaused: the job, or everything, is switched off.
	ErrPaused = errors.New("paused")
)

// refusal is the error of a run that does not take place. Its text omits the kind, which the outcome shows.
type refusal struct {
	kind   error // ErrRefused or ErrPaused
	reason string
	notice notify.Cause // cause to report; zero: it is made of job and reason
	cause  error        // may be nil
}

func (e *refusal) Error() string { return e.reason }

// refuse returns an ErrRefused with a reason.
func refuse(format string, args ...any) error {
	return &refusal{kind: ErrRefused, reason: fmt.Sprintf(format, args...)}
}

// Unwrap returns the kind, and the cause if there is one.
func (e *refusal) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// HoldsReminders reports whether everything is paused, and plain reminders too.
func (p Pauses) HoldsReminders() bool {
	pause, known := p.r.Spend.LastPause()
	return known && !pause.Over && pause.All
}

// paused returns a *refusal if the owner has paused everything. A pause does not apply to what the owner types.
func (r *Runner) paused(owner bool) error {
	paused, until, err := r.Spend.Paused()
	if err != nil {
		r.warn(err)
	}
	switch {
	case !paused || owner:
		return nil
	case until.IsZero():
		return &refusal{kind: ErrPaused, reason: "everything is paused: ollim resume"}
	}
	return &refusal{kind: ErrPaused, reason: "everything is paused until " + until.In(r.Zone).Format("2006-01-02 15:04") + ": ollim resume"}
}
