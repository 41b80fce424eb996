// Package webhook is the HTTP server that accepts events from outside: POST /hook/ID, signed by the sender, is one event for the
// webhook ID. The server answers 202 once the event is on disk, in the inbox, and with the id of the run that will handle it. It runs
// no agent itself.
//
// Whoever can reach the server may send anything. Until a signature has been verified the answers are the same for every webhook,
// also for one that does not exist, and memory and time are bounded: of a header, of a body, of all bodies together, of a connection
// that sends slowly, and of the number of connections. Signatures are verified over the bytes that arrived, before anything else
// looks at them. Bodies are not decompressed. No payload is ever logged.
package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
)

// Options is what a server works with.
type Options struct {
	Files   *Files
	Inbox   *inbox.Receiver
	Added   func() // an event was put into the inbox; returns at once
	MaxBody int64  // bytes
	Now     func() time.Time
	Log     func(Access)
	Warn    func(message string)
	Grace   time.Duration // for requests that are being answered when the server ends
}

// Limits of one request and of all.
const (
	maxHeader      = 16 << 10 // bytes
	headerTime     = 5 * time.Second
	requestTime    = 30 * time.Second // for the header and the body
	answerTime     = 60 * time.Second
	idleTime       = 2 * time.Minute
	maxConnections = 512
	maxBodies      = 64 << 20 // bytes in memory, of all requests
)

// server answers requests.
type server struct {
	Options

	connections *connections
	selecting   chan struct{} // one place for each payload that may be decoded at once
	unknown     Keys          // of webhooks that do not exist: nothing is signed with them
	stopping    atomic.Bool   // no connection is accepted any more, and none is kept open
	closing     atomic.Bool   // what arrives now is too late
}

func newServer(o Options) *server {
	return &server{
		Options:     o,
		connections: &connections{most: maxConnections, mostBytes: max(maxBodies, 2*o.MaxBody)},
		selecting:   make(chan struct{}, runtime.GOMAXPROCS(0)),
		unknown:     Keys{Scheme: job.New(job.Webhook).Hook.Signature, Values: [][]byte{[]byte(rand.Text())}},
	}
}

// connectionKey is the key of the *connection in the context of its requests.
type connectionKey struct{}

// http returns the server with its timeouts.
func (s *server) http() *http.Server {
	return &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes:               maxHeader,
		DisableGeneralOptionsHandler: true,
		ConnState:                    s.connections.changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ErrorLog: log.New(warnings(s.Warn), "", 0),
	}
}

// warnings passes on what net/http reports, such as that a connection cannot be accepted.
type warnings func(message string)

func (w warnings) Write(line []byte) (int, error) {
	w(string(line))
	return len(line), nil
}

// Run serves on all listeners until ctx ends; then it returns nil. Requests on connections that were accepted by then are answered as
// before, because a sender may not send again, and have Grace to end; those that begin even later are answered 503.
func Run(ctx context.Context, o Options, listeners ...net.Listener) error {
	s := newServer(o)
	return s.run(ctx, s.http(), listeners...)
}

func (s *server) run(ctx context.Context, h *http.Server, listeners ...net.Listener) error {
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- h.Serve(listener{l, s.connections}) }()
	}
	running, failed := len(listeners), error(nil)
	select {
	case <-ctx.Done():
	case failed = <-ended:
		running--
	}
	s.stopping.Store(true)
	for _, l := range listeners {
		_ = l.Close() // a socket of the service manager's stays open: its connections wait for the next server
	}
	for range running {
		if err := <-ended; failed == nil && !errors.Is(err, net.ErrClosed) {
			failed = err
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer cancel()
	s.connections.awaitFirst(grace, h.ReadHeaderTimeout)
	s.closing.Store(true)
	if h.Shutdown(grace) != nil {
		_ = h.Close()
	}
	return failed
}
