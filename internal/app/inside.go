package app

import (
	"fmt"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/runlog"
)

// RunID returns the run that started this process, "" outside a run.
func (a *App) RunID() string {
	id, _ := a.Lookup("OLLIM_RUN")
	return id
}

// Outside refuses, inside a run, what would belong to two runs.
func (a *App) Outside() error { return refuseInside(a.RunID()) }

// OwnerOnly refuses what only the owner may do to whatever runs inside a run, also where OLLIM_RUN was removed from its environment.
func (a *App) OwnerOnly() error {
	if err := a.Outside(); err != nil {
		return err
	}
	id, _ := process.Inside("OLLIM_RUN")
	return refuseInside(id)
}

func refuseInside(id string) error {
	if id == "" {
		return nil
	}
	return fmt.Errorf("%w: this is inside run %s", ErrNotAllowed, id)
}

// Tools returns the tools of the run that OLLIM_RUN names, which must be in progress.
func (h Home) Tools() (*tools.Set, error) {
	r, err := h.InProgress(h.app.RunID())
	if err != nil {
		return nil, err
	}
	return h.Runner(false).Tools(r), nil
}

// InProgress returns a run that has begun and not ended.
func (h Home) InProgress(id string) (*runlog.Run, error) {
	r, err := h.Runs().At(id)
	if err != nil || r.Done() {
		return nil, fmt.Errorf("%w: OLLIM_RUN=%s is not a run in progress", ErrNotAllowed, id)
	}
	return r, nil
}
