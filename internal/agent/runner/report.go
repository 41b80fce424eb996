package runner

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

var (
	errUnreported = errors.New("the agent did not report")
	errNothingDue = errors.New("nothing is due")
)

// nudges is how often an agent is reminded of a report before its run ends without one.
const nudges = 2

// Report is the duty of a background run to report to the main conversation, as its record says.
type Report struct{}

// Enforce reminds the agent of a report that it owes. If it still makes none, and one was always wanted, main is told that there
// is none.
func (Report) Enforce(ctx context.Context, r *Runner, t *Turn) error {
	var dear error
	for dear == nil {
		nudge, err := NextNudge(ctx, t.Run)
		if err != nil {
			return err
		}
		if nudge == "" {
			break
		}
		if err = t.Remind(ctx, nudge, t.Request); errors.Is(err, engine.ErrMaxCost) {
			dear = err // the work itself is done
		} else if err != nil {
			return err
		}
	}
	standing, err := t.Run.Standing()
	if err != nil || !owes(t.Run.Record, standing) {
		return err
	}
	if t.Run.Record.Update == string(job.Always) {
		err = r.Updates.Add(ctx, prompt.Unreported(t.Label), t.Run.ID)
	}
	return errors.Join(errUnreported, dear, err)
}

// NextNudge returns the reminder that a run is due, and notes it in the record; "" when the run owes nothing, or was reminded often
// enough. The engine's hook and the run itself both ask here, so that together they make no more than two.
func NextNudge(ctx context.Context, run *runlog.Run) (text string, err error) {
	err = run.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		if !owes(run.Record, s) || s.Nudges >= nudges {
			return runlog.Event{}, errNothingDue
		}
		text = prompt.Nudge(job.UpdateMode(run.Record.Update))
		return runlog.Event{Type: runlog.Nudge, Text: text}, nil
	})
	if errors.Is(err, errNothingDue) {
		err = nil
	}
	return text, err
}

func owes(r runlog.Record, s runlog.Standing) bool { return !r.Foreground && s.OwesReport(r.Update) }
