// Package openaiapi is an HTTP server for tests that speaks the wire format of OpenAI's chat completions as OpenAI and
// compatible servers do: streamed and whole answers, tool calls in fragments, reasoning, usage, errors by status, and
// the faults of a bad network. It is the counterpart of package anthropicapi and is used in the same way.
//
// Of the Responses API it has a streamed request with the search tool, in [Request.Search]; its reply is that of the script, too.
//
// A request to POST /v1/chat/completions is answered, in this order, by: the checks of the real service (see check.go),
// whose refusals are kept for [Server.Violations]; the script of the test (see package testkit); the text "ok".
//
// GET /v1/models lists the models of [Server.List]; without them it is 404.
//
// The server ends with its test: responses that are still held, silent or endless then are cut. Every key is accepted.
package openaiapi

import (
	"cmp"
	"net/http"
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// Server is one such service, with the methods of [wiretest.Server].
type Server struct {
	*core

	catalog *catalog
}

type (
	core     = apiserver.Server[request, Reply]
	exchange = apiserver.Exchange[request, Reply]
)

// New starts a server on 127.0.0.1 that ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	list := &catalog{}
	answer := func(x exchange, r *http.Request) { serve(x, r, list) }
	return &Server{apiserver.New(t, "openaitest", answer, func(request) Reply { return Reply{Text: "ok"} }), list}
}

// URL returns the base URL, with /v1 at its end as in OPENAI_BASE_URL.
func (s *Server) URL() string { return s.core.URL() + "/v1" }

const maxBody = 64 << 20 // bytes

func serve(x exchange, r *http.Request, list *catalog) {
	a := answer{x}
	raw, err := a.Body(r, maxBody)
	switch {
	case err != nil:
		a.fail(Reply{Status: http.StatusRequestEntityTooLarge})
	case r.URL.Path == "/v1/responses" && r.Method == http.MethodPost:
		a.search(r.Header, raw)
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet:
		a.models(list)
	case r.URL.Path != "/v1/chat/completions":
		a.fail(Reply{Status: http.StatusNotFound, Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
	case r.Method != http.MethodPost:
		a.fail(Reply{Status: http.StatusMethodNotAllowed})
	default:
		a.completion(r.Header, raw)
	}
}

func (a answer) completion(header http.Header, raw []byte) {
	q, broken := parse(header, raw)
	a.Record(q)
	if fault := cmp.Or(broken, q.check()); fault != "" {
		a.Violation(fault)
		a.fail(Reply{Status: http.StatusBadRequest, Message: fault})
		return
	}
	r := a.Next(q)
	r.ToolCalls = slices.Clone(r.ToolCalls)
	for i, c := range r.ToolCalls {
		if c.ID == "" {
			r.ToolCalls[i].ID = a.ID("call_t", q.calls)
		}
	}
	a.give(q, r)
}
