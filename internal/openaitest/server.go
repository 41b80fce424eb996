// Package openaitest is an HTTP server for tests that speaks the wire format of OpenAI's chat completions as OpenAI and the
// many servers of that kind do: streamed and whole answers, tool calls in fragments, reasoning, usage, errors by status, and
// the faults of a bad network. It is to the OpenAI side what package apitest is to Anthropic's, and is used in the same way.
//
// What answers a request to POST /v1/chat/completions, in this order: the checks of the real service (see check.go), whose
// refusals are kept for [Server.Violations], and a test that never asks for them fails at its end if there were any; the queue of
// [Server.Reply]; the function of [Server.Handle]; without one the text "ok".
//
// The server ends with its test: what is still held, silent or endless then is cut. No key is judged.
package openaitest

import (
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

// Server is one such service. All its methods may be called at any time, WaitRequests from the test's own goroutine only.
type Server struct {
	t    testing.TB
	http *httptest.Server

	mu         sync.Mutex
	arrived    chan struct{} // closed and renewed with every request
	queue      []Reply
	handler    func(Request) Reply
	requests   []Request
	violations []string
	looked     bool // somebody asked for the violations
	issued     int  // numbers given to tool calls
}

// New starts a server on 127.0.0.1 that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, arrived: make(chan struct{})}
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
			t.Errorf("openaitest: the real service would have refused:\n%s", strings.Join(s.violations, "\n"))
		}
	})
	return s
}

// URL is the base URL, with /v1 at its end as OPENAI_BASE_URL has it.
func (s *Server) URL() string { return s.http.URL + "/v1" }

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

// Left is the number of replies in the queue that nobody has taken.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Requests are the requests so far, in the order of arrival, those that were refused included.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// WaitRequests waits until n requests have come, and ends the test if that takes longer than timeout.
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
			s.t.Fatalf("openaitest: %d of %d requests after %s", len(got), n, timeout)
		}
	}
}

// Violations are the rules that requests broke so far, as the service words them.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = true
	return slices.Clone(s.violations)
}

const maxBody = 64 << 20 // bytes

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		// net/http would print a panic and hang up, and a client with retries would never tell.
		if p := recover(); p != nil && p != any(http.ErrAbortHandler) {
			s.t.Errorf("openaitest: answering %s %s: %v", r.Method, r.URL.Path, p)
			panic(http.ErrAbortHandler)
		} else if p != nil {
			panic(p)
		}
	}()
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	a := answer{w: w, ctx: r.Context()}
	switch {
	case err != nil:
		a.fail(Reply{Status: http.StatusRequestEntityTooLarge})
	case r.URL.Path != "/v1/chat/completions":
		a.fail(Reply{Status: http.StatusNotFound, Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
	case r.Method != http.MethodPost:
		a.fail(Reply{Status: http.StatusMethodNotAllowed})
	default:
		q, fault := parse(r.Header, raw)
		s.record(q)
		if fault == "" {
			fault = q.check()
		}
		if fault != "" {
			s.mu.Lock()
			s.violations = append(s.violations, fault)
			s.mu.Unlock()
			a.fail(Reply{Status: http.StatusBadRequest, Message: fault})
			return
		}
		a.give(q, s.next(q))
	}
}

func (s *Server) record(q Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, q)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

// next is what answers q, its tool calls with ids.
func (s *Server) next(q Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Reply{Text: "ok"}
	if len(s.queue) > 0 {
		r = s.queue[0]
		s.queue = s.queue[1:]
	} else if handler := s.handler; handler != nil {
		s.mu.Unlock() // it may wait, and may ask the server
		r = handler(q)
		s.mu.Lock()
	}
	r.ToolCalls = slices.Clone(r.ToolCalls)
	for i := range r.ToolCalls {
		for r.ToolCalls[i].ID == "" {
			s.issued++
			if id := fmt.Sprintf("call_t%d", s.issued); !q.calls(id) {
				r.ToolCalls[i].ID = id
			}
		}
	}
	return r
}
