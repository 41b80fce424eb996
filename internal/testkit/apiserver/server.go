// Package apiserver is for tests only. It holds the common part of the HTTP servers of packages anthropicapi and
// openaiapi. The servers end with their test, record requests, select the next reply, and send it with the faults of a
// bad network. The packages define the requests and replies.
//
// It is apart from package testkit, which nearly every test program links, so that these need not link net/http.
//
// A request that breaks no rule is answered, in this order, by: the routes of [Server.On], the newest first, which
// leave the queue alone; the queue of [Server.Reply], one reply each, in the order of arrival (a client's retry is a
// request too); the function of [Server.Handle].
//
// Requests run concurrently; the queue and the records are safe for that, and functions given to On and Handle must be.
// Responses that are still held, silent or endless at the end of the test are cut. A function that waits for the test
// itself would keep the server from ending: wait with [Way.Hold].
package apiserver

import (
	"context"
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

// Server answers requests Q with replies R. All its methods may be called at any time, WaitRequests from the test's own
// goroutine only.
type Server[Q, R any] struct {
	t      testing.TB
	name   string
	answer func(Exchange[Q, R], *http.Request)
	http   *httptest.Server

	mu         sync.Mutex
	arrived    chan struct{} // closed and renewed with every request
	queue      []R
	routes     []route[Q, R]
	handler    func(Q) R
	requests   []Q
	hits       []string
	violations []string
	looked     bool // Violations was called
	issued     int  // number of ids assigned
}

type route[Q, R any] struct {
	match  func(Q) bool
	answer func(Q) R
}

// New starts a server on 127.0.0.1 that ends with the test. name prefixes its messages to the test, answer handles
// every request and handler is the initial function of [Server.Handle].
func New[Q, R any](t testing.TB, name string, answer func(Exchange[Q, R], *http.Request), handler func(Q) R) *Server[Q, R] {
	t.Helper()
	s := &Server[Q, R]{t: t, name: name, answer: answer, handler: handler, arrived: make(chan struct{})}
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
			t.Errorf("%s: the real service would have refused:\n%s", name, strings.Join(s.violations, "\n"))
		}
	})
	return s
}

// URL returns the base URL, without a path or a slash at its end.
func (s *Server[Q, R]) URL() string { return s.http.URL }

// Reply appends replies to the queue.
func (s *Server[Q, R]) Reply(r ...R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, r...)
}

// Handle sets the function that answers when the queue is empty.
func (s *Server[Q, R]) Handle(f func(Q) R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = f
}

// On makes f answer every request that matches, in preference to the queue: for side requests, which arrive at any
// time.
func (s *Server[Q, R]) On(match func(Q) bool, f func(Q) R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes = append(s.routes, route[Q, R]{match, f})
}

// Left returns the number of unused replies in the queue.
func (s *Server[Q, R]) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Requests returns the requests for an answer of the model so far, in the order of arrival, including refused ones.
func (s *Server[Q, R]) Requests() []Q {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Forget drops the recorded requests, for a test that makes more of them than memory holds.
func (s *Server[Q, R]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.hits = nil, nil
}

// WaitRequests waits until n such requests have arrived, and fails the test if that takes longer than timeout.
func (s *Server[Q, R]) WaitRequests(n int, timeout time.Duration) []Q {
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
			s.t.Fatalf("%s: %d of %d requests after %s", s.name, len(got), n, timeout)
		}
	}
}

// Hits returns all requests so far, to any path, as "METHOD /path?query".
func (s *Server[Q, R]) Hits() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits)
}

// Violations returns the rules that requests broke so far, in the service's words. A test that never calls it fails at
// its end if there were any.
func (s *Server[Q, R]) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = true
	return slices.Clone(s.violations)
}

func (s *Server[Q, R]) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		// net/http would print a panic and close the connection, and a client with retries would hide it.
		if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
			s.t.Errorf("%s: answering %s %s: %v", s.name, r.Method, r.URL.Path, p)
			panic(http.ErrAbortHandler)
		} else if p != nil {
			panic(p)
		}
	}()
	s.mu.Lock()
	s.hits = append(s.hits, r.Method+" "+r.URL.RequestURI())
	x := Exchange[Q, R]{Answer: Answer{w, r.Context()}, Number: len(s.hits), s: s}
	s.mu.Unlock()
	s.answer(x, r)
}

// Exchange is one request, and the response to it.
type Exchange[Q, R any] struct {
	Answer
	Number int // position among the hits, from 1

	s *Server[Q, R]
}

// Record records a request for [Server.Requests].
func (x Exchange[Q, R]) Record(q Q) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.requests = append(x.s.requests, q)
	close(x.s.arrived)
	x.s.arrived = make(chan struct{})
}

// Violation records the rule that a request broke for [Server.Violations].
func (x Exchange[Q, R]) Violation(rule string) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.violations = append(x.s.violations, rule)
}

// Next returns the reply to q. The functions run without the lock, so that they may wait and may call the server.
func (x Exchange[Q, R]) Next(q Q) R {
	s := x.s
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
	return handler(q)
}

// ID returns prefix and a new number. Ids are unique in a conversation. A resumed one may have begun on another server,
// so the ids that it contains already are skipped.
func (x Exchange[Q, R]) ID(prefix string, taken func(id string) bool) string {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	for {
		x.s.issued++
		if id := fmt.Sprint(prefix, x.s.issued); !taken(id) {
			return id
		}
	}
}
