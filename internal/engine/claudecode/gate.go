package claudecode

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/state/runlog"
)

// The command reaches the model's API through a gateway in this process, on a unix socket of the run. It is told the name of the service,
// because with another name it sends other requests: without several betas, without the cache that all sessions of an organization share,
// and with another division of the system prompt (2.1.197 and 2.1.330). With the socket and the name, its requests are the same as without
// the gateway; TestSameRequests compares them.
//
// The command gets placeholders in place of keyVariables, which the gateway replaces. Those keys are in no process of the sealed domain.

// socketOf is the variable that names the socket to the command. ollim's own claude processes and the command's remote sessions use it.
const socketOf = "ANTHROPIC_UNIX_SOCKET"

// keyVariables are the variables whose values the gateway replaces.
func keyVariables() []string {
	return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}
}

// gated reports whether the command reaches the service through a gateway. It does not if it calls a cloud of somebody else's.
func (e *Engine) gated() bool {
	return !e.Direct && !slices.ContainsFunc(e.Env, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "CLAUDE_CODE_USE_") && value != "" && value != "0" && value != "false"
	})
}

// gate is the gateway of one process of the command.
type gate struct {
	*command.Gate
	socket runlog.Socket
}

// open opens a gateway, and returns an engine whose environment leads to it.
func (e *Engine) open(ctx context.Context, r engine.Request) (*gate, *Engine, error) {
	service, err := url.Parse(cmp.Or(e.variable("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"))
	if err != nil || service.Host == "" {
		return nil, e, fmt.Errorf("%w: ANTHROPIC_BASE_URL is not an address: want https://HOST", engine.ErrSetup)
	}
	own, err := command.NewGate(ctx, r, e.Disk.Now(), e.variable)
	if err != nil {
		return nil, e, err
	}
	g := &gate{Gate: own}
	g.Service, g.Models, g.Idle = service, e.Models, cmp.Or(e.Idle, g.Idle)
	if err := e.identify(g.HTTP.TLSClientConfig); err != nil {
		return nil, e, err
	}
	with := *e
	with.Env, with.through = slices.Clone(e.Env), true
	for _, name := range keyVariables() {
		if value := e.variable(name); value != "" {
			with.Env = append(with.Env, name+"="+g.Hide(value))
		}
	}
	g.socket = runlog.SocketOf(e.Home.Run(r.Run.ID), runlog.ModelSocket)
	if err = g.socket.Make(); err == nil {
		err = g.Listen(ctx, g.socket.Path)
	}
	if err != nil {
		g.socket.Remove()
		return nil, e, fmt.Errorf("the socket to the model: %w", err)
	}
	with.Env = append(with.Env, socketOf+"="+g.socket.Path, "ANTHROPIC_BASE_URL="+g.At(service.Host)) // on the socket, without TLS
	return g, &with, nil
}

func (g *gate) close() {
	if g == nil {
		return
	}
	g.Close()
	g.socket.Remove()
}

// explain is command.Gate.Explain; a process may have no gateway.
func (g *gate) explain(err error) error {
	if g == nil {
		return err
	}
	return g.Explain(err)
}

// identify adds the certificate by which the command identifies itself to the service.
func (e *Engine) identify(t *tls.Config) error {
	file := e.variable("CLAUDE_CODE_CLIENT_CERT")
	if file == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(file, e.variable("CLAUDE_CODE_CLIENT_KEY"))
	if err != nil {
		return fmt.Errorf("%w: CLAUDE_CODE_CLIENT_CERT and CLAUDE_CODE_CLIENT_KEY: %w; a key with a passphrase needs claude-code.gateway: off", engine.ErrSetup, err)
	}
	t.Certificates = []tls.Certificate{pair}
	return nil
}
