package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/forward"
)

// Sealed is a run whose processes have this process execute their commands of ollim.
type Sealed struct {
	runner.Service

	socket string
	home   Home
}

// longestSocket is the length of the path of a socket, in bytes, that every system takes.
const longestSocket = 100

// serve executes the commands of ollim of a sealed run.
func (h Home) serve(service runner.Service) (runner.Socket, error) {
	path, remove, err := socketPath(h.Dir.RunSocket(service.Run))
	if err != nil {
		return runner.Socket{}, err
	}
	run := Sealed{service, path, h}
	_ = os.Remove(path) // of a run that goes on, whose process died
	server, err := forward.Listen(path, func(ctx context.Context, r forward.Request) int { return h.app.Execute(ctx, run, r) })
	if err != nil {
		remove()
		return runner.Socket{}, err
	}
	return runner.Socket{Path: path, Close: func() {
		server.Close()
		remove()
	}}, nil
}

// socketPath returns a path for a socket that would best be at another one: in a new directory of this user's alone, if that
// is too long. remove removes the directory.
func socketPath(best string) (path string, remove func(), err error) {
	if len(best) <= longestSocket {
		return best, func() {}, nil
	}
	dir, err := os.MkdirTemp("/tmp", "ollim-")
	return filepath.Join(dir, "socket"), func() { _ = os.RemoveAll(dir) }, err
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
	return &App{Machine: m, run: &s}
}
