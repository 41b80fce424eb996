package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/forward"
	"github.com/ollim/ollim/internal/policy"
)

// Sealed is a run whose processes have this process execute their commands of ollim.
type Sealed struct {
	runner.Service

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

// longestSocket is the length of the path of a socket, in bytes, that every system takes.
const longestSocket = 100

// serve returns the socket by which this process executes the commands of ollim of a sealed run.
func (h Home) serve(service runner.Service) runner.Socket {
	path := h.Dir.RunSocket(service.Run)
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	own := "" // a new directory of this user's alone
	if len(path) > longestSocket {
		own = fmt.Sprintf("/tmp/ollim-%s-socket%d", service.Run, os.Getpid())
		path = filepath.Join(own, "socket")
	}
	run := Sealed{service, path, h}
	var server *forward.Server
	listen := func() (err error) {
		if own != "" {
			err = os.Mkdir(own, 0o700)
		} else {
			_ = os.Remove(path) // of a run that goes on, whose process died
		}
		if err == nil {
			server, err = forward.Listen(path, func(ctx context.Context, r forward.Request) int { return h.app.Execute(ctx, run, r) })
		}
		if err != nil {
			return fmt.Errorf("the run's socket: %w", err)
		}
		return nil
	}
	return runner.Socket{Path: path, Listen: listen, Close: func() {
		if server != nil {
			server.Close()
		}
		if own != "" {
			_ = os.Remove(own)
		}
	}}
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
