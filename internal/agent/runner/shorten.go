package runner

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// full returns when the run's session is compacted without being asked. A session that no later run continues is compacted for the sake
// of its model's window alone: a summary would cost more than it saves.
func (r *Runner) full(s Spec, run *runlog.Run) engine.Full {
	if run.Key == "" && run.Kind != kindAsk {
		return engine.Full{}
	}
	return engine.Full{Tokens: r.Settings.CompactAt, MaxCost: r.mostOf(s)}
}

// mostOf returns the most that a run may cost, in USD, by its job or --max-cost and by spend.per-run; 0 is no limit.
func (r *Runner) mostOf(s Spec) float64 {
	perRun := finite(r.Spend.Limits.PerRun)
	if cost := s.Limits.Cost; cost > 0 && (perRun == 0 || s.Limits.Typed || cost < perRun) {
		return cost
	}
	return perRun
}

// remedy adds what the owner can do to the error of a run that reached its own limit. The error of a daily or monthly limit already says
// until when it lasts.
func (w *work) remedy(session string, err error) error {
	if !errors.Is(err, engine.ErrMaxCost) || errors.As(err, new(*overLimit)) {
		return err
	}
	most := w.r.mostOf(w.spec)
	if next := (*engine.Unaffordable)(nil); errors.As(err, &next) {
		most = max(most, next.Next+next.Spent)
	}
	raise := strings.Join(w.raised(math.Ceil(most*200)/100), " and ")
	if so, soErr := w.run.SoFar(); session != "" && soErr == nil && so.ContextBefore > shortSession {
		return fmt.Errorf("%w; to shorten the session: ollim session compact %s Keep what matters; to allow more: %s", err, session, raise)
	}
	return fmt.Errorf("%w; to allow more: %s", err, raise)
}

// raised returns the settings with which a run like this one may cost most, in USD.
func (w *work) raised(most float64) (steps []string) {
	own, enough := w.spec.Limits.Cost, engine.USD(most)
	switch {
	case own == 0 || own >= most:
	case w.spec.Limits.Typed:
		return []string{"--max-cost " + enough}
	case w.run.Kind == string(job.Reminder):
		steps = append(steps, fmt.Sprintf("set max-cost: %s in %s", enough, w.run.Path))
	default:
		steps = append(steps, fmt.Sprintf("set max-cost: %s with ollim %s edit %s", enough, w.run.Kind, w.run.Name))
	}
	if perRun := finite(w.r.Spend.Limits.PerRun); perRun > 0 && perRun < most {
		steps = append(steps, "ollim config set spend.per-run "+enough)
	}
	return steps
}

// shortSession is the length in tokens of a session that a compaction would not make much cheaper.
const shortSession = 8000
