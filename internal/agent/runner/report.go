package runner

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
)

var errUnreported = errors.New("the agent did not report")

// Report is the duty of a background run to report to the main conversation, as its record says.
type Report struct{}

// Enforce reminds the agent of a report that it owes. If it still makes none and its job always wants one, an update
// says so.
func (Report) Enforce(ctx context.Context, r *Runner, t *Turn) error {
	var dear error
	for dear == nil {
		nudge, err := t.Tools.Nudge(ctx)
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
	if err := waits(t.Run); err != nil { // it asked in its last turn
		return err
	}
	standing, err := t.Run.Standing()
	if err != nil || !t.Run.Owes(standing) {
		return err
	}
	if t.Run.Record.Update == string(job.Always) {
		err = r.Updates.Add(ctx, unreported(t.Label), t.Run.ID)
	}
	return errors.Join(errUnreported, dear, err)
}
