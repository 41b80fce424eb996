package runner

import (
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Service is what a process of a sealed run may have executed: what an agent may use of ollim, and what its engine starts.
type Service struct {
	Run     string
	Servers []string // patterns of the tools of MCP servers that the engine is offered
	Seal    *seal.Seal
	Vars    []string // of the programs of those servers, KEY=value
	Write   []string // directories and files that its processes may write, without links
}

// Socket is where the processes of a run connect to.
type Socket struct {
	Path   string       // absolute, without links
	Listen func() error // makes the socket
	Close  func()       // ends what is being executed, waits for it, and removes the socket
}

// serve returns the socket by which the run's process executes the commands of ollim that processes of a sealed run start.
func (w *work) serve() Socket {
	s := w.Serve(Service{w.run.ID, w.spec.servers(w.run), w.tools.Seal, w.vars, w.run.Sealed.Write})
	w.socket = s.Path
	w.tools.Env = append(slices.Clone(w.tools.Env), engine.SocketVariable+"="+s.Path)
	return s
}

// servers is the patterns of the tools of MCP servers that a run's engine is offered.
func (s Spec) servers(run *runlog.Run) []string {
	return policy.OfServers(slices.Concat(run.Tools, s.Policy.Offered)...)
}
