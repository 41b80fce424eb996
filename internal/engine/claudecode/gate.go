package claudecode

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/engine/gateway"
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
	*gateway.Gateway
	transport *http.Transport
	socket    runlog.Socket
}

// open opens a gateway, and returns an engine whose environment leads to it.
func (e *Engine) open(ctx context.Context, r engine.Request) (*gate, *Engine, error) {
	service, err := url.Parse(cmp.Or(e.variable("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"))
	if err != nil || service.Host == "" {
		return nil, e, fmt.Errorf("%w: ANTHROPIC_BASE_URL is not an address: want https://HOST", engine.ErrSetup)
	}
	transport, err := e.transport()
	if err != nil {
		return nil, e, err
	}
	with := *e
	with.Env, with.through = slices.Clone(e.Env), true
	secrets := map[string]string{}
	for _, name := range keyVariables() {
		if value := e.variable(name); value != "" {
			placeholder := "ollim-" + strings.ToLower(rand.Text())
			secrets[placeholder] = value
			with.Env = append(with.Env, name+"="+placeholder)
		}
	}
	g := &gate{transport: transport, Gateway: &gateway.Gateway{
		Service: service, Transport: transport, Secrets: secrets, Keep: r.Run.Sent, Models: e.Models, Idle: cmp.Or(e.Idle, command.Silence(ctx, e.Disk.Now(), gateway.Idle)),
	}}
	if r.Limits.MaxCost > 0 {
		g.Most = max(r.Limits.MaxCost-r.Limits.Spent, least)
	}
	g.socket = runlog.SocketOf(e.Home.Run(r.Run.ID), runlog.ModelSocket)
	if err = g.socket.Make(); err == nil {
		err = g.Listen(ctx, g.socket.Path)
	}
	if err != nil {
		g.socket.Remove()
		return nil, e, fmt.Errorf("the socket to the model: %w", err)
	}
	inside := *service
	inside.Scheme = "http" // on the socket, without TLS
	with.Env = append(with.Env, socketOf+"="+g.socket.Path, "ANTHROPIC_BASE_URL="+inside.String())
	return g, &with, nil
}

func (g *gate) close() {
	if g == nil {
		return
	}
	g.Close()
	g.transport.CloseIdleConnections()
	g.socket.Remove()
}

// explain returns how a process ended, given what the command says: as the gateway knows it, if the command only says that there was no
// answer.
func (g *gate) explain(err error) error {
	known := []error{engine.ErrMaxCost, engine.ErrMaxTurns, engine.ErrSessionUnknown, engine.ErrKey}
	if g == nil || err == nil || errors.As(err, new(*engine.Overloaded)) || slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
		return err
	}
	if g.Limited() {
		return fmt.Errorf("%w: the gateway ended an answer, because the %s USD that were left are spent", engine.ErrMaxCost, engine.USD(g.Most))
	}
	if fault := g.Fault(); fault != "" {
		return fmt.Errorf("%w: %s", engine.ErrUnavailable, fault)
	}
	return err
}

// connectTime is how long a connection to the service may take. The command tries several times.
const connectTime = 30 * time.Second

// transport returns what reaches the service as the command would: through the owner's proxy, and with the owner's certificates.
func (e *Engine) transport() (*http.Transport, error) {
	either := func(name string) string { return cmp.Or(e.variable(strings.ToLower(name)), e.variable(name)) }
	proxy := (&httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}).ProxyFunc()
	t := &http.Transport{
		Proxy:       func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		DialContext: (&net.Dialer{Timeout: connectTime}).DialContext, TLSHandshakeTimeout: connectTime,
		DisableCompression: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if file := e.variable(certificates); file != "" {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", engine.ErrSetup, certificates, err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%w: %s: %s has no certificate", engine.ErrSetup, certificates, file)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	if file := e.variable("CLAUDE_CODE_CLIENT_CERT"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, e.variable("CLAUDE_CODE_CLIENT_KEY"))
		if err != nil {
			return nil, fmt.Errorf("%w: CLAUDE_CODE_CLIENT_CERT and CLAUDE_CODE_CLIENT_KEY: %w; a key with a passphrase needs claude-code.gateway: off", engine.ErrSetup, err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}
