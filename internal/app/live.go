package app

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
)

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
