package runner

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
)

var errUnreported = errors.New("the agent did not report")

// report is the duty of a background run to report to the main conversation, as its record says. The agent is reminded; if it still
// makes none and its job always wants one, an update says so.
func report(ctx context.Context, r *Runner, t *conversation.Turn) error {
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
			dear = err // the work itself is done
		} else if err != nil {
			return err
		}
	}
	if err := waits(t.Run); err != nil { // it asked in its last turn
		return err
	}
	standing, err := t.Run.Standing()
	if err != nil || !t.Run.Owes(standing) {
		return err
	}
	if t.Run.Record.Update == string(job.Always) {
		err = r.Updates.Add(ctx, unreported(t.Run.Label()), t.Run.ID)
	}
	return errors.Join(errUnreported, dear, err)
}
