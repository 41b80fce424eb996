// Package apitest is an HTTP server for tests that speaks the wire format of the Anthropic Messages API: streamed and whole
// answers, tool use, thinking, errors by status, and the faults of a bad network. The real claude command and the native
// engine both talk to it; it holds no model, a test says what the model answers.
//
// What answers a request to POST /v1/messages, in this order:
//
//  1. the checks of the real API (see check.go). What breaks a rule gets 400 and is kept for [Server.Violations]; a test that
//     never asks for them fails at its end if there were any.
//  2. the routes of [Server.On], the newest first. They take nothing from the queue. One is there from the start: a request
//     of claude for a summary ([Request.IsCompaction]) gets a summary that quotes its additional instructions.
//  3. the queue of [Server.Reply]: one reply each, in the order of arrival. A client's retry is a request too.
//  4. the function of [Server.Handle], and without one the text "ok".
//
// Requests run at the same time; the queue and the records are safe for that, and functions given to On and Handle must be.
// The server ends with its test: what is still held, silent or endless then is cut.
package apitest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is one such API. All its methods may be called at any time, WaitRequests from the test's own goroutine only.
type Server struct {
	t    testing.TB
	http *httptest.Server

	mu         sync.Mutex
	arrived    chan struct{} // closed and renewed with every request
	queue      []Reply
	routes     []route
	handler    func(Request) Reply
	requests   []Request
	hits       []string
	violations []string
	looked     bool // somebody asked for the violations
	issued     int  // numbers given to tool uses
}

type route struct {
	match  func(Request) bool
	answer func(Request) Reply
}

// New starts a server on 127.0.0.1 that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, arrived: make(chan struct{})}
	s.On(Request.IsCompaction, summary)
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	ctx, cancel := context.WithCancel(context.Background())
	s.http.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.http.Start()
	t.Cleanup(func() {
		cancel()
		s.http.Close()
		if !s.looked && len(s.violations) > 0 {
			t.Errorf("apitest: the real API would have refused:\n%s", strings.Join(s.violations, "\n"))
		}
	})
	return s
}

// URL is the base URL, as in ANTHROPIC_BASE_URL: without a path and without a slash at its end.
func (s *Server) URL() string { return s.http.URL }

// Reply puts replies at the end of the queue.
func (s *Server) Reply(r ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, r...)
}

// Handle sets what answers when the queue is empty.
func (s *Server) Handle(f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = f
}

// On lets f answer every request that matches, before the queue is asked: for side requests, which come when they like.
func (s *Server) On(match func(Request) bool, f func(Request) Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = append(s.routes, route{match, f})
}

// CompactReply sets the answer to claude's requests for a summary, from now on.
func (s *Server) CompactReply(r Reply) { s.On(Request.IsCompaction, func(Request) Reply { return r }) }

// Requests are the requests to POST /v1/messages so far, in the order of arrival, those that were refused included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// WaitRequests waits until n requests have come to POST /v1/messages, and ends the test if that takes longer than timeout.
func (s *Server) WaitRequests(n int, timeout time.Duration) []Request {
	s.t.Helper()
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		s.mu.Lock()
		got, arrived := slices.Clone(s.requests), s.arrived
		s.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-arrived:
		case <-late.C:
			s.t.Fatalf("apitest: %d of %d requests after %s", len(got), n, timeout)
		}
	}
}

// Hits are all requests so far, to whatever path, as "METHOD /path?query".
func (s *Server) Hits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits)
}

// Violations are the rules of the API that requests broke so far, as the API words them.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = true
	return slices.Clone(s.violations)
}

// Left is the number of replies in the queue that nobody has taken.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

const maxBody = 32 << 20 // bytes, the limit of the real API

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	s.mu.Lock()
	s.hits = append(s.hits, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	a := answer{w: w, ctx: r.Context(), id: unique("req", r.RemoteAddr, len(s.Hits()), raw)}
	switch {
	case err != nil:
		a.fail(Reply{Status: http.StatusRequestEntityTooLarge})
	case r.URL.Path != "/v1/messages" && r.URL.Path != "/v1/messages/count_tokens":
		a.fail(Reply{Status: http.StatusNotFound})
	case r.Method != http.MethodPost:
		a.fail(Reply{Status: http.StatusMethodNotAllowed})
	case r.URL.Path == "/v1/messages":
		s.messages(a, r.Header, raw)
	default:
		s.count(a, r.Header, raw)
	}
}

func (s *Server) messages(a answer, header http.Header, raw []byte) {
	q, broken := parse(header, raw)
	q.ID, q.At = a.id, now()
	s.record(q)
	if q.Key() == "" {
		a.fail(Reply{Status: http.StatusUnauthorized, Message: "x-api-key header is required"})
		return
	}
	if fault := cmp.Or(broken, q.check(), q.checkLimit()); fault != "" {
		s.refuse(a, fault)
		return
	}
	reply := s.named(s.next(q), q)
	a.give(q, reply)
}

func (s *Server) count(a answer, header http.Header, raw []byte) {
	q, broken := parse(header, raw)
	if fault := cmp.Or(broken, q.check()); fault != "" {
		s.refuse(a, fault)
		return
	}
	a.whole(http.StatusOK, map[string]int{"input_tokens": q.tokens()})
}

func (s *Server) record(q Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

func (s *Server) refuse(a answer, fault string) {
	s.mu.Lock()
	s.violations = append(s.violations, fault)
	s.mu.Unlock()
	a.fail(Reply{Status: http.StatusBadRequest, Message: fault})
}

// next is what answers q. The functions run without the lock, so that they may wait and may ask the server.
func (s *Server) next(q Request) Reply {
	s.mu.Lock()
	routes, handler := slices.Clone(s.routes), s.handler
	s.mu.Unlock()
	for _, r := range slices.Backward(routes) {
		if r.match(q) {
			return r.answer(q)
		}
	}
	s.mu.Lock()
	if len(s.queue) > 0 {
		defer s.mu.Unlock()
		r := s.queue[0]
		s.queue = s.queue[1:]
		return r
	}
	s.mu.Unlock()
	if handler != nil {
		return handler(q)
	}
	return Reply{Text: "ok"}
}

// named gives the tool uses without an id theirs. Ids are unique in a conversation, and a resumed one may have begun on
// another server, so numbers that it holds already are left out.
func (s *Server) named(r Reply, q Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ToolUses = slices.Clone(r.ToolUses)
	for i := range r.ToolUses {
		for r.ToolUses[i].ID == "" {
			s.issued++
			if id := fmt.Sprintf("toolu_%d", s.issued); !q.uses(id) {
				r.ToolUses[i].ID = id
			}
		}
	}
	return r
}
