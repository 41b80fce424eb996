package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// errWaiting ends the first part of a run that has asked the owner a question.
var errWaiting = errors.New("the run waits for an answer")

var errUnreported = errors.New("the agent did not report")

// ErrGated is the error of a run whose gate found nothing to do.
var ErrGated = errors.New("held back by its gate")

// waits returns errWaiting if a run has asked the owner a question. Its duties are enforced when it has the answer.
func waits(run *runlog.Run) error {
	standing, err := run.Standing()
	if err == nil && standing.Asking() {
		err = errWaiting
	}
	return err
}

// enforce carries out the duties of the run.
func (w *work) enforce(ctx context.Context, t *conversation.Turn) error {
	if err := waits(w.run); err != nil {
		return err
	}
	for _, duty := range w.spec.Duties {
		if err := duty(ctx, w.tools, t); err != nil {
			return err
		}
	}
	return nil
}

// Report is the duty of a background run to report to the main conversation, as its record requires. An agent that has not reported is
// reminded. If it still does not report and its job always requires a report, an update says so.
func Report(ctx context.Context, set *tools.Set, t *conversation.Turn) error {
	var dear error
	for dear == nil {
		nudge, err := t.Tools.Nudge(ctx)
		if err != nil {
			return err
		}
		if nudge == "" {
			break
		}
		if err = t.Resume(ctx, nudge, true); errors.Is(err, engine.ErrMaxCost) {
			dear = err // only the reminder failed, and the agent's work is done
		} else if err != nil {
			return err
		}
	}
	if err := waits(t.Run); err != nil { // the agent asked a question in its last turn
		return err
	}
	standing, err := t.Run.Standing()
	if err != nil || !t.Run.Owes(standing) {
		return err
	}
	if t.Run.Record.Update == string(job.Always) {
		err = set.Updates.Add(ctx, unreported(t.Run.Label()), t.Run.ID)
	}
	return errors.Join(errUnreported, dear, err)
}

// unreported returns the update that replaces a missing report of an agent.
func unreported(label string) string {
	return fmt.Sprintf("%s ran but did not report what it did.", label)
}

// compact compacts the session if the agent asked for it. After a turn that went wrong the session stays whole, and the agent is told at
// its next fire that it was not compacted.
func (w *work) compact(ctx context.Context, t *conversation.Turn, ended error) error {
	if ended != nil && !errors.Is(ended, errUnreported) && !errors.Is(ended, errWaiting) {
		return nil
	}
	err := t.Compact(ctx)
	if errors.Is(err, engine.ErrMaxCost) { // only the compaction failed, and the turn is done
		return w.run.Event(ctx, runlog.Event{Type: runlog.CompactFailed, Text: err.Error()})
	}
	return err
}

// compactNow compacts the conversation's session by the owner's instructions.
func (w *work) compactNow(ctx context.Context, turn *conversation.Turn) error {
	if from := turn.From(); from != "" {
		return fmt.Errorf("%w; the next turn carries the conversation over", engine.Foreign(from))
	}
	if turn.Session() == "" {
		return errors.New("there is no session to compact yet")
	}
	if err := w.run.Event(ctx, runlog.Event{Type: runlog.CompactWish, Text: w.spec.Compact}); err != nil {
		return err
	}
	return turn.Compact(ctx)
}

// full returns when the run's session is compacted automatically. A session that no later run continues is compacted only because of the
// model's window: otherwise a summary would cost more than it saves.
func (r *Runner) full(s Spec, run *runlog.Run) engine.Full {
	if run.Key == "" && run.Kind != runlog.Ask {
		return engine.Full{}
	}
	return engine.Full{Tokens: r.Settings.CompactAt, MaxCost: s.most(r.Spend.Limits.PerRun)}
}
