package command

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
	"github.com/ollim/ollim/internal/engine/gateway"
)

// Gate is the gateway of one process of a command, which has placeholders in place of the keys. Its own fields are set before it listens.
type Gate struct {
	gateway.Gateway
	HTTP *http.Transport // reaches the service
}

// NewGate returns a gateway with the limits of a request. It reaches services as the command would, whose variables are those of variable.
func NewGate(ctx context.Context, r engine.Request, now time.Time, variable func(name string) string) (*Gate, error) {
	t, err := transport(variable)
	if err != nil {
		return nil, err
	}
	g := &Gate{HTTP: t}
	g.Transport, g.Secrets, g.Keep, g.Idle = t, map[string]string{}, r.Run.Sent, Silence(ctx, now, gateway.Idle)
	if r.Limits.MaxCost > 0 {
		g.Most = max(r.Limits.MaxCost-r.Limits.Spent, Least)
	}
	return g, nil
}

// Hide returns a placeholder for a key, which is worth nothing elsewhere.
func (g *Gate) Hide(key string) (placeholder string) {
	placeholder = "ollim-" + strings.ToLower(rand.Text())
	g.Secrets[placeholder] = key
	return placeholder
}

// At returns the address of the service for the command, with the gateway as the host.
func (g *Gate) At(host string) string {
	inside := *g.Service
	inside.Scheme, inside.Host = "http", host
	return inside.String()
}

// Close ends the gateway and its connections.
func (g *Gate) Close() {
	g.Gateway.Close()
	g.HTTP.CloseIdleConnections()
}

// Ended returns why the gateway itself has refused a request or ended an answer; nil if it has not.
func (g *Gate) Ended() error {
	if g.Limited() {
		return fmt.Errorf("%w: the gateway ended an answer, because the %s USD that were left are spent", engine.ErrMaxCost, engine.USD(g.Most))
	}
	return g.Unpriced()
}

// Explain returns how a process ended, given what the command says: as the gateway knows it, if the command only says that there was no
// answer.
func (g *Gate) Explain(err error) error {
	known := []error{engine.ErrMaxCost, engine.ErrMaxTurns, engine.ErrSessionUnknown, engine.ErrKey}
	if err == nil || errors.As(err, new(*engine.Overloaded)) || slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
		return err
	}
	if ended := g.Ended(); ended != nil {
		return ended
	}
	if fault := g.Fault(); fault != "" {
		return fmt.Errorf("%w: %s", engine.ErrUnavailable, fault)
	}
	return err
}

// connectTime is how long a connection to the service may take. Commands try several times.
const connectTime = 30 * time.Second

// Certificates is the variable that names a file of certificates that commands of Node accept besides those of the system.
const Certificates = "NODE_EXTRA_CA_CERTS"

// transport returns what reaches a service through the owner's proxy, and with the owner's certificates.
func transport(variable func(name string) string) (*http.Transport, error) {
	either := func(name string) string { return cmp.Or(variable(strings.ToLower(name)), variable(name)) }
	proxy := (&httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}).ProxyFunc()
	t := &http.Transport{
		Proxy:       func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		DialContext: (&net.Dialer{Timeout: connectTime}).DialContext, TLSHandshakeTimeout: connectTime,
		DisableCompression: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	file := variable(Certificates)
	if file == "" {
		return t, nil
	}
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", engine.ErrSetup, Certificates, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: %s: %s has no certificate", engine.ErrSetup, Certificates, file)
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}
