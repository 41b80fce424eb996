// Package anthropicapi is an HTTP server for tests that speaks the wire format of the Anthropic Messages API: streamed and whole
// answers, tool use, thinking, errors by status, and the faults of a bad network. The real claude command and the native
// engine both talk to it; it has no model, the test sets the answers.
//
// What answers a request to POST /v1/messages, in this order:
//
//  1. the checks of the real API (see check.go). What breaks a rule gets 400 and is kept for [Server.Violations].
//  2. the script of the test (see package testkit). One route is there from the start: a request of claude for a summary
//     ([Request.IsCompaction]) gets a summary that quotes its additional instructions.
//  3. the text "ok".
//
// GET /v1/models lists the models of [Server.List], by pages; without them it is 404.
//
// No credentials are judged: any x-api-key or Authorization will do, none is 401.
package anthropicapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// Server is one such API, with the methods of [wiretest.Server]. Its URL is as in ANTHROPIC_BASE_URL.
type Server struct {
	*core

	catalog *catalog
}

type (
	core     = apiserver.Server[Request, Reply]
	exchange = apiserver.Exchange[Request, Reply]
)

// New starts a server on 127.0.0.1 that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	again, list := &refusals{}, &catalog{}
	answer := func(x exchange, r *http.Request) { serve(x, r, again, list) }
	s := &Server{apiserver.New(t, "apitest", answer, func(Request) Reply { return Reply{Text: "ok"} }), list}
	s.On(Request.IsCompaction, summary)
	return s
}

// CompactReply sets the answer to claude's requests for a summary, from now on.
func (s *Server) CompactReply(r Reply) { s.On(Request.IsCompaction, func(Request) Reply { return r }) }

const maxBody = 32 << 20 // bytes, the limit of the real API

func serve(x exchange, r *http.Request, again *refusals, list *catalog) {
	a := answer{x, unique("req", fmt.Sprint(r.Host, x.Number, time.Now().UnixNano())), again}
	a.Header("Request-Id", a.id)
	raw, err := a.Body(r, maxBody)
	switch {
	case err != nil:
		a.fail(Reply{Status: http.StatusRequestEntityTooLarge})
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet:
		a.models(r.Header, r.URL.Query(), list)
	case r.URL.Path != "/v1/messages" && r.URL.Path != "/v1/messages/count_tokens":
		a.fail(Reply{Status: http.StatusNotFound})
	case r.Method != http.MethodPost:
		a.fail(Reply{Status: http.StatusMethodNotAllowed})
	case r.URL.Path == "/v1/messages":
		a.messages(r.Header, raw)
	default:
		a.count(r.Header, raw)
	}
}

func (a answer) messages(header http.Header, raw []byte) {
	q, broken := parse(header, raw)
	q.ID, q.At = a.id, time.Now()
	a.Record(q)
	if q.Key() == "" {
		a.fail(noKey())
		return
	}
	if fault := cmp.Or(broken, q.check(), q.checkLimit()); fault != "" {
		a.refuse(fault)
		return
	}
	r, refused := a.again.find(q)
	if !refused {
		r = a.Next(q)
		a.again.keep(q, r)
	}
	r.ToolUses = slices.Clone(r.ToolUses)
	for i, u := range r.ToolUses {
		if u.ID == "" {
			r.ToolUses[i].ID = a.ID("toolu_", q.uses)
		}
	}
	a.give(q, r)
}

func (a answer) count(header http.Header, raw []byte) {
	q, broken := parse(header, raw)
	if q.Key() == "" {
		a.fail(noKey())
		return
	}
	if fault := cmp.Or(broken, q.check()); fault != "" {
		a.refuse(fault)
		return
	}
	a.JSON(http.StatusOK, map[string]int{"input_tokens": q.tokens()})
}

func noKey() Reply {
	return Reply{Status: http.StatusUnauthorized, Message: "x-api-key header is required"}
}

func (a answer) refuse(fault string) {
	a.Violation(fault)
	a.fail(Reply{Status: http.StatusBadRequest, Message: fault})
}
