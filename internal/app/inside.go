package app

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/forward"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// RunID returns the run that started this process, "" outside a run.
func (a *App) RunID() string {
	id, _ := a.Lookup("OLLIM_RUN")
	return id
}

// Outside returns an error inside a run, for work that would otherwise belong to two runs.
func (a *App) Outside() error { return refuseInside(a.RunID()) }

// OwnerOnly returns an error inside a run, for what only the owner may do. It detects the run even if OLLIM_RUN was removed from the
// environment.
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
	if id == "" {
		return nil, fmt.Errorf("%w: OLLIM_RUN is not set: only the engine of a run starts this command", ErrNotAllowed)
	}
	r, err := h.Runs.At(id)
	if err != nil || r.Done() {
		return nil, fmt.Errorf("%w: OLLIM_RUN=%s is not a run in progress", ErrNotAllowed, id)
	}
	return r, nil
}

// Tools returns the tools of the run that OLLIM_RUN names, which must be in progress, for a process that serves them for some
// time: each use follows the settings as they are then.
func (a *App) Tools() (*liveTools, error) {
	l := &liveTools{app: a}
	_, err := l.current()
	return l, err
}

// liveTools holds the tools of one run. It may be used from several goroutines at once.
type liveTools struct {
	app *App

	mu  sync.Mutex
	by  *settings // that set was made with
	set *tools.Set
}

// current returns the tools by the present settings. If the settings cannot be used, it returns the last tools with the error.
func (l *liveTools) current() (*tools.Set, error) {
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
func (l *liveTools) List() []engine.Tool { return l.now().List() }

// Call runs one tool.
func (l *liveTools) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	return l.now().Call(ctx, name, input)
}

func (l *liveTools) now() *tools.Set {
	set, err := l.current()
	if err != nil {
		l.app.warn(err.Error())
	}
	return set
}

// Sealed is a sealed run for whose processes this process executes commands of ollim.
type Sealed struct {
	run.Service

	socket string
	home   Home
}

// writes reports whether processes of the run may write in a directory.
func (s *Sealed) writes(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && slices.ContainsFunc(s.Write, func(writable string) bool {
		_, in := policy.Below(real, writable)
		return in
	})
}

// serve returns the socket by which this process executes the commands of ollim of a sealed run.
func (h Home) serve(service run.Service) run.Socket {
	socket := runlog.SocketOf(h.Dir.Run(service.Run), runlog.CommandSocket)
	sealed := Sealed{service, socket.Path, h}
	var server *forward.Server
	listen := func() (err error) {
		if err = socket.Make(); err == nil {
			server, err = forward.Listen(socket.Path, func(ctx context.Context, r forward.Request) int { return h.app.Execute(ctx, sealed, r) })
		}
		if err != nil {
			return fmt.Errorf("the run's socket: %w", err)
		}
		return nil
	}
	return run.Socket{Path: socket.Path, Listen: listen, Close: func() {
		if server != nil {
			server.Close()
			socket.Remove()
		}
	}}
}

// Hints returns the function that explains what the seal denied to a command of the run that sent this command; nil outside a sealed run.
func (a *App) Hints() engine.Hints {
	if a.run == nil {
		return nil
	}
	return a.run.Hints
}

// App returns the App of one command of the run. Its environment is the one that the command would have as a process of the run, with
// the keys of engines, which are hidden in what the run writes; secrets are found where this process finds them. The rest of the machine,
// locks and connections are those of this process.
func (s Sealed) App() *App {
	a := s.home.app
	env := append(s.home.childEnv(), s.home.location()...)
	env = append(env, engine.Run{ID: s.Run, Socket: s.socket}.Env()...)
	own, m := append(locatesSecrets(), keyNames()...), a.Machine
	m.Lookup = func(name string) (string, bool) {
		if slices.Contains(own, name) {
			return a.Lookup(name)
		}
		for _, entry := range slices.Backward(env) {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				return value, true
			}
		}
		return "", false
	}
	return &App{Machine: m, parent: a, run: &s}
}
