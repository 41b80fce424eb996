// Package trialmodel is a model service on the loopback interface whose model says what it is told to say. With it an engine finds out what a
// program does with the answers of a model; no other model is asked, and nothing is charged. It speaks Anthropic's Messages API,
// OpenAI's Responses API and Google's generateContent, with answers that are streamed.
package trialmodel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ollim/ollim/internal/state/model"
)

// mostBody is how much of a request is read, in bytes.
const mostBody = 32 << 20

// Answer is an answer of the model: uses of tools or, if there are none, a text.
type Answer struct {
	Model string
	Text  string
	Uses  []Use
	Usage model.Tokens
}

// Use is a use of a tool.
type Use struct {
	Tool  string
	Input string // JSON
	Offer string // what a request has that offers the tool; "": "name":"TOOL", as programs encode it
}

// Server serves HTTP on a port of 127.0.0.1.
type Server struct {
	URL    string // without a path
	server *http.Server
}

// Listen starts a server.
func Listen(ctx context.Context, handler http.Handler) (Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Server{}, err
	}
	s := Server{"http://" + listener.Addr().String(), &http.Server{Handler: handler}}
	go func() { _ = s.server.Serve(listener) }() // ends when Close is called
	return s, nil
}

// Close ends the server and its connections.
func (s Server) Close() { _ = s.server.Close() }

// Service is a running service.
type Service struct {
	Server

	use     Use
	offered atomic.Bool
}

// Serve starts a service whose model uses a tool once in each conversation in which it is offered, and else says "done".
func Serve(ctx context.Context, use Use) (*Service, error) {
	s := &Service{use: use}
	var err error
	s.Server, err = Listen(ctx, http.HandlerFunc(s.serve))
	return s, err
}

// Offered reports whether a request has offered the tool to the model.
func (s *Service) Offered() bool { return s.offered.Load() }

func (s *Service) offers(body []byte) bool {
	return bytes.Contains(body, []byte(cmp.Or(s.use.Offer, `"name":"`+s.use.Tool+`"`)))
}

// hasResult reports whether a request has the result of a tool. A text that contains one of these words has its quotes escaped.
func hasResult(body []byte) bool {
	return slices.ContainsFunc([]string{`"tool_result"`, `"function_call_output"`, `"functionResponse"`}, func(kind string) bool {
		return bytes.Contains(body, []byte(kind))
	})
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, mostBody))
	write := writer(r.URL.Path)
	if err != nil || write == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var q struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &q) // Google's has none
	a := Answer{Model: q.Model, Text: "done", Usage: model.Tokens{In: 1, Out: 1}}
	if s.offers(body) {
		s.offered.Store(true)
		if !hasResult(body) {
			a.Uses = []Use{s.use}
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	write(w, a)
}

// writer returns what writes the answer to a request; nil for one that no model answers.
func writer(path string) func(io.Writer, Answer) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return Messages
	case strings.HasSuffix(path, "/responses"):
		return Responses
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return Generate
	}
	return nil
}

// object is a JSON object. Texts and numbers can always be encoded.
type object = map[string]any

func encode(o object) []byte {
	data, _ := json.Marshal(o)
	return data
}

// newID returns an id that no other answer has: programs tell the parts of a session apart by them.
func newID(kind string) string { return kind + "_" + strings.ToLower(rand.Text()) }

// Messages writes an answer as Anthropic's Messages API streams it.
func Messages(w io.Writer, a Answer) {
	send := func(kind string, more object) {
		more["type"] = kind
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(more))
	}
	send("message_start", object{"message": object{
		"id": newID("msg"), "type": "message", "role": "assistant", "model": a.Model, "content": []object{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": a.Usage.In, "cache_read_input_tokens": a.Usage.CacheRead, "cache_creation_input_tokens": a.Usage.CacheWrite, "output_tokens": 1},
	}})
	block := func(i int, start, delta object) {
		send("content_block_start", object{"index": i, "content_block": start})
		send("content_block_delta", object{"index": i, "delta": delta})
		send("content_block_stop", object{"index": i})
	}
	stop := "end_turn"
	if len(a.Uses) == 0 {
		block(0, object{"type": "text", "text": ""}, object{"type": "text_delta", "text": a.Text})
	}
	for i, u := range a.Uses {
		stop = "tool_use"
		block(i, object{"type": "tool_use", "id": newID("toolu"), "name": u.Tool, "input": object{}},
			object{"type": "input_json_delta", "partial_json": u.Input})
	}
	send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": a.Usage.Out}})
	send("message_stop", object{})
}

// Responses writes an answer as OpenAI's Responses API streams it.
func Responses(w io.Writer, a Answer) {
	n := 0
	send := func(kind string, more object) {
		more["type"], more["sequence_number"] = kind, n
		n++
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encode(more))
	}
	responseID := newID("resp")
	response := func(status string, output []object, usage any) object {
		return object{"response": object{
			"id": responseID, "object": "response", "created_at": 1, "status": status, "model": a.Model, "output": output, "error": nil, "usage": usage,
		}}
	}
	var output []object
	if len(a.Uses) == 0 {
		output = append(output, object{"type": "message", "id": newID("msg"), "status": "completed", "role": "assistant", "content": []object{
			{"type": "output_text", "text": a.Text, "annotations": []object{}},
		}})
	}
	for _, u := range a.Uses {
		output = append(output, object{"type": "function_call", "id": newID("fc"), "call_id": newID("call"), "status": "completed", "name": u.Tool, "arguments": u.Input})
	}
	send("response.created", response("in_progress", []object{}, nil))
	for i, item := range output {
		send("response.output_item.added", object{"output_index": i, "item": item})
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	send("response.completed", response("completed", output, object{
		"input_tokens": a.Usage.In, "input_tokens_details": object{"cached_tokens": a.Usage.CacheRead},
		"output_tokens": a.Usage.Out, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": a.Usage.In + a.Usage.Out,
	}))
}

// Generate writes an answer as Google's streamGenerateContent streams it.
func Generate(w io.Writer, a Answer) {
	var parts []object
	if len(a.Uses) == 0 {
		parts = []object{{"text": a.Text}}
	}
	for _, u := range a.Uses {
		parts = append(parts, object{"functionCall": object{"name": u.Tool, "args": json.RawMessage(u.Input)}})
	}
	_, _ = fmt.Fprintf(w, "data: %s\r\n\r\n", encode(object{
		"candidates":    []object{{"content": object{"parts": parts, "role": "model"}, "index": 0, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": a.Usage.In, "candidatesTokenCount": a.Usage.Out, "totalTokenCount": a.Usage.In + a.Usage.Out},
		"modelVersion":  a.Model, "responseId": newID("r"),
	}))
}
