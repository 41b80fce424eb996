// Package agentapi is an HTTP server for tests that speaks the two wire formats of models that agents of others use besides that of
// package anthropicapi: OpenAI's Responses API, streamed, as codex uses it, and Google's generateContent, as gemini uses it. It has no
// model, the test sets the replies (see package apiserver). It answers requests of both kinds by one script.
//
// POST /v1/responses and POST /v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens are its paths. A request
// that breaks a rule of the service gets 400 and is kept for [Server.Violations]. One without a key gets 401. Every key but "wrong" is
// accepted.
package agentapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// Server is one such service.
type Server struct{ *core }

type (
	core     = apiserver.Server[Request, Reply]
	exchange = apiserver.Exchange[Request, Reply]
	obj      = map[string]any
)

// Request is one request for an answer of the model.
type Request struct {
	Model  string
	System string   // instructions, and messages of the roles system and developer
	Said   []string // the texts of the conversation in order: of the user and the model, arguments of calls, results of tools
	Tools  []string // the names of the functions that are offered, with the namespace of each before it
	Key    string   // credentials, without "Bearer "
	Raw    []byte

	ids []string // of the calls in the conversation
}

// Has reports whether a text occurs anywhere in the conversation, without the system prompt.
func (q Request) Has(text string) bool {
	for _, said := range q.Said {
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// Reply is one response. A zero Reply is a model that ends its turn without text.
type Reply struct {
	Text   string
	Uses   []ToolUse // after the text
	Usage  Usage     // zero: a guess by the length
	Status int       // of HTTP, from 400 on: an error instead of a message
	Way    apiserver.Way
}

// ToolUse is a call of a tool by the model.
type ToolUse struct {
	Namespace string // of the Responses API: the group that holds the tool, "" if none does
	Name      string
	Input     any // becomes a JSON object; a string is the input of a tool without a schema, which the Responses API has
}

// Use returns a reply that calls one tool. A name of the form NAMESPACE/NAME has a namespace.
func Use(name string, input any) Reply {
	space, plain, found := strings.Cut(name, "/")
	if !found {
		space, plain = "", name
	}
	return Reply{Uses: []ToolUse{{Namespace: space, Name: plain, Input: input}}}
}

// Usage is counted in tokens. In includes those of the cache.
type Usage struct{ In, Out, Cached int }

// New starts a server on 127.0.0.1 that ends with the test. Its URL has no path.
func New(t testing.TB) *Server {
	t.Helper()
	return &Server{apiserver.New(t, "agentapi", serve, func(Request) Reply { return Reply{Text: "ok"} })}
}

const (
	maxBody       = 64 << 20 // bytes
	wrongKey      = "wrong"  // the key that is refused
	bytesPerToken = 4        // a common rule of thumb instead of a tokenizer
)

func serve(x exchange, r *http.Request) {
	raw, err := x.Body(r, maxBody)
	model, verb, gemini := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1beta/models/"), ":")
	switch {
	case err != nil:
		x.JSON(http.StatusRequestEntityTooLarge, openaiError(http.StatusRequestEntityTooLarge, "too large"))
	case r.Method == http.MethodPost && r.URL.Path == "/v1/responses":
		(&responses{x}).serve(r.Header, raw)
	case r.Method == http.MethodPost && gemini:
		(&generate{x, model, verb}).serve(r, raw)
	default:
		x.JSON(http.StatusNotFound, openaiError(http.StatusNotFound, "Invalid URL ("+r.Method+" "+r.URL.Path+")"))
	}
}

// next returns the reply to a request that breaks no rule. Status is set if the request is refused.
func next(x exchange, q Request, fault string) Reply {
	x.Record(q)
	switch {
	case q.Key == "" || q.Key == wrongKey:
		return Reply{Status: http.StatusUnauthorized}
	case fault != "":
		x.Violation(fault)
		return Reply{Status: http.StatusBadRequest}
	}
	r := x.Next(q)
	if r.Usage == (Usage{}) {
		r.Usage = Usage{In: max(1, len(q.Raw)/bytesPerToken), Out: max(1, len(r.Text)/bytesPerToken)}
	}
	return r
}

func encode(v any) string { return string(apiserver.Encode(v)) }

// arguments returns the input of a call as a JSON object.
func (u ToolUse) arguments() string {
	if u.Input == nil {
		return "{}"
	}
	return encode(u.Input)
}

// texts are the values of all strings named text in a JSON value that is a string, a part or a list of parts.
func texts(v any) (list []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, part := range v {
			list = append(list, texts(part)...)
		}
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return []string{text}
		}
	}
	return list
}

// object decodes a body.
func object(raw []byte) (m obj, fault string) {
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, "We could not parse the JSON body of your request: " + err.Error()
	}
	return m, ""
}

func text(m obj, key string) string {
	s, _ := m[key].(string)
	return s
}

// list returns the objects of an array.
func list(v any) (objects []obj) {
	all, _ := v.([]any)
	for _, one := range all {
		m, _ := one.(obj)
		objects = append(objects, m)
	}
	return objects
}

func openaiError(status int, message string) obj {
	kind, code := "invalid_request_error", any(nil)
	switch status {
	case http.StatusUnauthorized:
		code, message = "invalid_api_key", cmp.Or(message, "Incorrect API key provided.")
	case http.StatusTooManyRequests:
		kind, code, message = "requests", "rate_limit_exceeded", cmp.Or(message, "Rate limit reached.")
	}
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return obj{"error": obj{"message": cmp.Or(message, http.StatusText(status)), "type": kind, "param": nil, "code": code}}
}

// created is the time of every reply, so that two runs of a test are equal.
func created() int64 { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix() }
