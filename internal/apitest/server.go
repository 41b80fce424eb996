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
// The server ends with its test: what is still held, silent or endless then is cut. A function that waits for the test itself
// would keep the server from ending: wait with [Reply.Hold].
//
// No credentials are judged: any x-api-key or Authorization will do, none is 401.
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
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.looked && len(s.violations) > 0 {
			t.Errorf("apitest: the real API would have refused:\n%s", strings.Join(s.violations, "\n"))
		}
	})
	return s
}

// URL is the base URL, as in ANTHROPIC_BASE_URL: without a path and without a slash at its end.
func (s *Server) URL() string { return s.http.URL }

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

const maxBody = 32 << 20 // bytes, the limit of the real API

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		// net/http would print a panic and hang up, and a client with retries would never tell.
		if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
			s.t.Errorf("apitest: answering %s %s: %v", r.Method, r.URL.Path, p)
			panic(http.ErrAbortHandler)
		} else if p != nil {
			panic(p)
		}
	}()
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	s.mu.Lock()
	s.hits = append(s.hits, r.Method+" "+r.URL.RequestURI())
	a := answer{w: w, ctx: r.Context(), id: unique("req", fmt.Sprint(s.URL(), len(s.hits), now().UnixNano()))}
	s.mu.Unlock()
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
		a.fail(noKey())
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
	if q.Key() == "" {
		a.fail(noKey())
		return
	}
	if fault := cmp.Or(broken, q.check()); fault != "" {
		s.refuse(a, fault)
		return
	}
	a.whole(http.StatusOK, map[string]int{"input_tokens": q.tokens()})
}

func noKey() Reply {
	return Reply{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
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
