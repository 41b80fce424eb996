// Package discordapi is Discord for tests, as far as a bot with one owner sees it: the REST API and the gateway, written from
// Discord's public documentation. It has the people of a test ([Server.Say], [Server.Click], [Server.Slash]), keeps what the bot
// sends ([Server.Messages], [Server.Calls]), and plays the faults of a bad day ([Server.Close], [Server.Silence], [Server.Cut]).
//
// What Discord refuses is refused in the same form. What it would let pass but a bot should not send is a violation, and fails the
// test at its end.
package discordapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options describe a world. Zero values are a bot with a token, whose owner has DMs open.
type Options struct {
	SlashTime time.Duration // how long the first answer to an interaction may take; 0 is Discord's 3 s
	Heartbeat time.Duration // the interval that HELLO asks for; 0 is Discord's 41.25 s
	Limits    bool          // requests over the rate limits get 429
	Unlimited bool          // the rate limits are a thousand requests a second, for a test of many turns
	Team      []string      // user ids of the team that owns the application, the owner first; nil: Owner owns it
	Memory    bool          // connections are made by Transport alone, for a test in a bubble of testing/synctest
	Zero      bool          // READY is numbered 0, and the first event after it 1, as another program numbers them
	Odd       bool          // channels, users, the application and the gateway's address have a key of a type that no client expects
	Closed    int           // code with which opening a DM or sending to it is refused, such as 50007; 0: DMs are open
}

// discordBeat is the interval of heartbeats that Discord asks for.
const discordBeat = 41250 * time.Millisecond

// first is before all ids that are given.
const first uint64 = 1300000000000000000

// The ids that every world has.
const (
	Token       = "test-token.of-a.bot"
	Bot         = "1100000000000000001"
	Application = "1100000000000000002"
	Owner       = "1100000000000000003"
	DM          = "1100000000000000004" // the channel between Owner and Bot
	Guild       = "1100000000000000005"
)

// Server is one such world.
type Server struct {
	t       testing.TB
	options Options
	http    *httptest.Server
	wire    *wire
	memory  *memory // nil without Options.Memory

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	last    uint64        // the last id that was given
	began   time.Time

	world world
	gate  gateway
	rest  rest
}

// New starts a server on 127.0.0.1 that ends with the test.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	o.Heartbeat, o.SlashTime = cmp.Or(o.Heartbeat, discordBeat), cmp.Or(o.SlashTime, slashTime)
	s := &Server{t: t, options: o, changed: make(chan struct{}), began: time.Now()}
	s.world = newWorld()
	s.gate = gateway{sessions: map[string]*session{}, conns: map[*conn]bool{}}
	s.rest = rest{buckets: map[string][]time.Time{}, interactions: map[string]*Interaction{}, nonces: map[string]string{}}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if o.Memory {
		_ = s.http.Listener.Close() // of the host's network
		s.memory = &memory{dialed: make(chan net.Conn), done: make(chan struct{})}
		s.http.Listener = s.memory
	}
	s.wire = &wire{Listener: s.http.Listener, open: map[net.Conn]bool{}}
	s.http.Listener = s.wire
	s.http.Start()
	t.Cleanup(func() {
		s.Cut()
		s.gate.closeAll(s)
		s.http.Close()
		for _, v := range s.Violations() {
			t.Errorf("discordapi: %s", v)
		}
	})
	return s
}

// URL is the address of the server, without a path: what stands for https://discord.com.
func (s *Server) URL() string { return s.http.URL }

// Wait waits until ok reports true, and fails the test after five minutes. ok is asked after every change here, and now and then,
// because it may ask about the bot.
func (s *Server) Wait(what string, ok func() bool) {
	s.t.Helper()
	late := time.After(5 * time.Minute)
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-late:
			s.t.Fatalf("discordapi: waited in vain for %s", what)
		}
	}
}

// note wakes up who waits. The caller holds mu.
func (s *Server) note() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// id returns a new snowflake, which tells when it was made and is larger than all before. The caller holds mu.
func (s *Server) id() string {
	s.last = max(s.last+1<<22, first+uint64(time.Since(s.began).Milliseconds())<<22) //nolint:gosec // it is positive
	return fmt.Sprint(s.last)
}

// violate keeps what the bot did wrong. The caller holds mu.
func (s *Server) violate(format string, args ...any) {
	s.rest.violations = append(s.rest.violations, fmt.Sprintf(format, args...))
}

// Violations are what the bot did that Discord's documentation forbids.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rest.violations)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/ws"):
		s.connect(w, r)
	case strings.HasPrefix(r.URL.Path, "/attachments/"):
		s.download(w, r)
	default:
		s.call(w, r)
	}
}

// Cut cuts the network: every connection ends without a word, and new ones end at once, until Restore.
func (s *Server) Cut() { s.wire.cut(true) }

// Restore ends Cut.
func (s *Server) Restore() { s.wire.cut(false) }

// wire is a network that can be cut.
type wire struct {
	net.Listener

	mu   sync.Mutex
	gone bool
	open map[net.Conn]bool
}

// Accept returns the next connection, when the network is there.
func (w *wire) Accept() (net.Conn, error) {
	for {
		c, err := w.Listener.Accept()
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		gone := w.gone
		w.open[c] = true
		w.mu.Unlock()
		if !gone {
			return c, nil
		}
		reset(c)
	}
}

func (w *wire) cut(gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = gone
	if gone {
		for c := range w.open {
			reset(c)
		}
		clear(w.open)
	}
}

// reset ends a connection without a closing handshake of any protocol.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of the server's own values
	}
	return data
}

// ClearViolations forgets what the bot did wrong, for a test of a client that cannot do better.
func (s *Server) ClearViolations() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest.violations = nil
}
