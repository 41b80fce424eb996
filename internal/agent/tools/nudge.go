package tools

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// mostNudges is how often an agent is reminded of a report before its run ends without one.
const mostNudges = 2

var errNothingDue = errors.New("nothing is due")

// Nudge returns the reminder of a report that the run owes, and records it; "" if it owes none or was reminded often enough. The
// engine's hook and the run itself both call it, so that together they remind no more than twice.
func (b *Set) Nudge(ctx context.Context) (text string, err error) {
	err = b.Run.Decide(ctx, func(s runlog.Standing) (runlog.Event, error) {
		if !b.Run.Owes(s) || s.Nudges >= mostNudges || s.Asking() { // of a run that waits the report is due at its end
			return runlog.Event{}, errNothingDue
		}
		text = prompt.Nudge(job.UpdateMode(b.Run.Record.Update))
		return runlog.Event{Type: runlog.Nudge, Text: text}, nil
	})
	if errors.Is(err, errNothingDue) {
		err = nil
	}
	return text, err
}

// Judged returns the ids of the tool uses that have a verdict.
func (b *Set) Judged() (map[string]bool, error) { return b.Run.Judged() }
