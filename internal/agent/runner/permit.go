package runner

import (
	"context"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// askOwner lets the owner answer what the run's tools ask, until the returned function is called.
func (w *work) askOwner(ctx context.Context) (stop func()) {
	if !w.run.MayAsk {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		look := time.NewTicker(tools.AskEvery)
		defer look.Stop()
		for ctx.Err() == nil {
			asked, err := w.run.Unanswered()
			w.warn(err)
			for _, use := range asked {
				w.permit(ctx, use)
			}
			select {
			case <-look.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); asking.Wait() }
}

// permit asks about one use and records the answer, unless the use has been decided meanwhile.
func (w *work) permit(ctx context.Context, use runlog.Event) {
	waiting, cancel := context.WithTimeout(ctx, tools.AskPatience)
	defer cancel()
	allowed := w.spec.Observe.Permit(waiting, use)
	if waiting.Err() == nil {
		w.warn(w.run.Event(ctx, runlog.Event{Type: runlog.Permitted, Tool: use.Tool, ToolID: use.ToolID, IsError: !allowed}))
	}
}

// reach returns the patterns that file tools check when they are used. If the owner can be asked, they cover all that the owner may
// allow.
func reach(run *runlog.Run) []string {
	if policy.Mode(run.Permissions) == "" {
		return run.Tools
	}
	return append([]string{"Read(./**)", "Glob(./**)", "Grep(./**)", "Write(./**)", "Edit(./**)"}, run.Tools...)
}
