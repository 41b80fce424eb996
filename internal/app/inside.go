package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
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
	r, err := h.Runs.At(id)
	if err != nil || r.Done() {
		return nil, fmt.Errorf("%w: OLLIM_RUN=%s is not a run in progress", ErrNotAllowed, id)
	}
	return r, nil
}

// Tools returns the tools of the run that OLLIM_RUN names, which must be in progress, for a process that serves them for some
// time: each use follows the settings as they are then.
func (a *App) Tools() (*LiveTools, error) {
	l := &LiveTools{app: a}
	_, err := l.current()
	return l, err
}

// LiveTools is the tools of one run. It may be used from several goroutines at once.
type LiveTools struct {
	app *App

	mu  sync.Mutex
	by  *settings // that set was made with
	set *tools.Set
}

// current returns the tools by the present settings. Where those cannot be had it returns the last ones with the error.
func (l *LiveTools) current() (*tools.Set, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, err := l.app.Home()
	if err != nil || h.by == l.by {
		return l.set, err
	}
	set, err := h.Tools()
	if err == nil {
		l.by, l.set = h.by, set
	}
	return l.set, err
}

// List returns the tools that the run may use.
func (l *LiveTools) List() []engine.Tool { return l.now().List() }

// Call runs one tool.
func (l *LiveTools) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	return l.now().Call(ctx, name, input)
}

func (l *LiveTools) now() *tools.Set {
	set, err := l.current()
	if err != nil {
		l.app.warn(err.Error())
	}
	return set
}
