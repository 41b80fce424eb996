package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// Programs of the agent can use the gateway too: so many connections and requests at once do not exhaust this process.
const (
	connections = 256
	atOnce      = 16
)

// Listen serves a unix socket until Close is called.
func (g *Gateway) Listen(ctx context.Context, socket string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	g.serve(listener)
	return nil
}

// ListenTCP serves a port of 127.0.0.1 until Close is called, for a program that can use no unix socket. It returns the address. Every
// program of the machine can connect to it, so a request needs a placeholder.
func (g *Gateway) ListenTCP(ctx context.Context) (at netip.AddrPort, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return at, err
	}
	if at, err = netip.ParseAddrPort(listener.Addr().String()); err != nil {
		return at, errors.Join(err, listener.Close())
	}
	g.keyed = true
	g.serve(own{listener, os.Getuid()})
	return at, nil
}

func (g *Gateway) serve(listener net.Listener) {
	g.inFlight, g.places = map[*call]bool{}, make(chan struct{}, atOnce)
	listener = netutil.LimitListener(listener, connections)
	silent := log.New(io.Discard, "", 0) // Fault tells what is to be told
	forward := &httputil.ReverseProxy{
		Rewrite: g.rewrite, Transport: roundTripper(g.send), ErrorHandler: g.failed,
		FlushInterval: -1, // each part at once
		ErrorLog:      silent,
	}
	g.server = &http.Server{Handler: g.guard(forward), ReadHeaderTimeout: time.Minute, IdleTimeout: 5 * time.Minute, ErrorLog: silent}
	go func() { _ = g.server.Serve(listener) }() // ends when Close is called
}

// guard refuses what the gateway does not pass on.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			return
		}
		defer g.serving.Done()
		fault, given := g.given()
		switch {
		case g.keyed && !g.knows(r.Header):
			w.Header().Set("Connection", "close")
			refuse(w, http.StatusUnauthorized, "authentication_error", "the gateway of ollim does not know the key of this request")
		case r.Method == http.MethodHead: // the command tries the connection
			w.WriteHeader(http.StatusOK)
		case r.Method != http.MethodPost || !g.passes(r.URL.Path) || r.URL.RawPath != "":
			refuse(w, http.StatusForbidden, "permission_error", fmt.Sprintf("the gateway of ollim does not pass on %s %s", r.Method, r.URL.Path))
		case g.exhausted():
			refuse(w, http.StatusBadRequest, "invalid_request_error", g.limit())
		case given:
			refuse(w, http.StatusBadRequest, "invalid_request_error", fault)
		default:
			g.places <- struct{}{}
			defer func() { <-g.places }()
			next.ServeHTTP(w, r)
		}
	})
}

// passes reports whether the program may ask for a path. Anything else, such as a batch, would cost what nobody counts.
func (g *Gateway) passes(asked string) bool {
	patterns := g.Paths
	if patterns == nil {
		patterns = []string{"/v1/messages", "/v1/messages/count_tokens"}
	}
	inside := strings.TrimPrefix(asked, strings.TrimSuffix(g.Service.Path, "/"))
	return slices.ContainsFunc(patterns, func(p string) bool { same, _ := path.Match(p, inside); return same })
}

// keyHeaders are the headers in which services take a key.
func keyHeaders() []string { return []string{"X-Api-Key", "Authorization", "X-Goog-Api-Key"} }

// knows reports whether a request has a placeholder.
func (g *Gateway) knows(h http.Header) bool {
	for _, name := range keyHeaders() {
		for placeholder := range g.Secrets {
			if strings.Contains(h.Get(name), placeholder) {
				return true
			}
		}
	}
	return false
}
