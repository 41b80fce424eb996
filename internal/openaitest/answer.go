package openaitest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// answer is the response to one request, on its way.
type answer struct {
	w   http.ResponseWriter
	ctx context.Context // ends when the client goes away or the server closes
}

type obj = map[string]any

func (a answer) give(q Request, r Reply) {
	if r.Hold != nil {
		select {
		case <-r.Hold:
		case <-a.ctx.Done():
			a.cut()
		}
	}
	a.pause(r.Delay)
	for key, values := range r.Header {
		a.w.Header()[http.CanonicalHeaderKey(key)] = values
	}
	switch {
	case r.Fault == HangUp:
		a.cut()
	case r.Fault == Mute:
		a.silence()
	case r.Fault == WrongContentType:
		a.send(http.StatusOK, "text/html; charset=utf-8", []byte("<!DOCTYPE html><title>Log in</title><h1>Log in to the network</h1>\n"))
	case r.Status >= 400 && r.Fault != ErrorEvent:
		a.fail(r)
	case q.Stream:
		a.stream(q, r)
	default:
		var calls []obj
		for i, c := range r.ToolCalls {
			calls = append(calls, r.call(i, c.Arguments))
		}
		message := obj{"role": "assistant", "content": r.Text, "tool_calls": calls}
		a.send(http.StatusOK, "application/json", encode(obj{"id": "chatcmpl-1", "object": "chat.completion", "model": q.Model,
			"choices": []obj{{"index": 0, "message": message, "finish_reason": r.finish()}}, "usage": r.usage(q)}))
	}
}

// fail sends an error of the service.
func (a answer) fail(r Reply) {
	if r.RetryAfter != "" {
		a.header("Retry-After", r.RetryAfter)
	}
	r = r.completed()
	a.send(r.Status, "application/json", encode(r.problem()))
}

func (r Reply) problem() obj {
	r = r.completed()
	var code any
	if r.Code != "" {
		code = r.Code
	}
	return obj{"error": obj{"message": r.Message, "type": r.Kind, "param": nil, "code": code}}
}

// stream sends the events of a reply, with its fault.
func (a answer) stream(q Request, r Reply) {
	a.header("Cache-Control", "no-cache")
	a.send(http.StatusOK, "text/event-stream; charset=utf-8", nil)
	if r.Fault == Endless {
		r.Text = cmp.Or(r.Text, "and so on ")
	}
	list := r.events(q)
	for i, e := range list {
		for i == 1 && r.Fault == Endless {
			a.event(e, max(r.StreamDelay, time.Millisecond)) // so that a reader can keep up
		}
		if i == r.After && a.fault(r) {
			return
		}
		a.event(e, r.StreamDelay)
	}
	if r.After >= len(list) {
		a.fault(r)
	}
}

// fault does what goes wrong at this point of the stream; done says that nothing may follow.
func (a answer) fault(r Reply) (done bool) {
	switch r.Fault {
	case Cut:
		a.cut()
	case Silent:
		a.silence()
	case Malformed:
		a.event(`{"id":"chatcmpl-1","choices":[{"ind`, 0)
	case ErrorEvent:
		a.event(string(encode(r.problem())), 0)
	}
	return r.Fault == Short || r.Fault == ErrorEvent
}

// events are the data of the stream that delivers r.
func (r Reply) events(q Request) (list []string) {
	if r.Raw != nil {
		return r.Raw
	}
	chunk := func(delta obj, finish any) {
		choices := []obj{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		list = append(list, string(encode(q.chunk(choices, nil))))
	}
	chunk(obj{"role": "assistant", "content": ""}, nil)
	for _, p := range pieces(r.Reasoning) {
		chunk(obj{"content": nil, cmp.Or(r.Field, "reasoning_content"): p}, nil)
	}
	for _, p := range pieces(r.Text) {
		chunk(obj{"content": p}, nil)
	}
	for i, c := range r.ToolCalls {
		chunk(obj{"tool_calls": []obj{r.call(i, "")}}, nil)
		for _, p := range pieces(c.Arguments) {
			chunk(obj{"tool_calls": []obj{{"index": i, "function": obj{"arguments": p}}}}, nil)
		}
	}
	chunk(obj{}, r.finish())
	if q.IncludeUsage {
		list = append(list, string(encode(q.chunk([]obj{}, r.usage(q)))))
	}
	if !r.NoDone {
		list = append(list, "[DONE]")
	}
	return list
}

func (q Request) chunk(choices []obj, usage obj) obj {
	c := obj{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": q.Model, "choices": choices}
	if q.IncludeUsage {
		c["usage"] = usage
	}
	return c
}

func (r Reply) call(i int, arguments string) obj {
	c := r.ToolCalls[i]
	return obj{"index": i, "id": c.ID, "type": "function", "function": obj{"name": c.Name, "arguments": arguments}}
}

const bytesPerToken = 4 // a common rule of thumb, here for want of a tokenizer

func (r Reply) usage(q Request) obj {
	u := r.Usage
	if u == (Usage{}) {
		u = Usage{In: max(1, len(q.Raw)/bytesPerToken), Out: max(1, (len(r.Text)+len(r.Reasoning))/bytesPerToken)}
	}
	return obj{"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out,
		"prompt_tokens_details": obj{"cached_tokens": u.Cached, "audio_tokens": 0}}
}

const maxPieces = 5

// pieces cuts a text into a few parts, at boundaries of characters.
func pieces(text string) (parts []string) {
	runes := []rune(text)
	for part := range slices.Chunk(runes, max(1, (len(runes)+maxPieces-1)/maxPieces)) {
		parts = append(parts, string(part))
	}
	return parts
}

// event waits and sends. A reader that has gone ends the response.
func (a answer) event(data string, delay time.Duration) {
	a.pause(delay)
	a.push(fmt.Appendf(nil, "data: %s\n\n", data))
}

func (a answer) send(status int, contentType string, body []byte) {
	a.header("Content-Type", contentType)
	a.w.WriteHeader(status)
	a.push(body)
}

// header sets one unless the reply did.
func (a answer) header(key, value string) {
	if _, set := a.w.Header()[key]; !set {
		a.w.Header().Set(key, value)
	}
}

func (a answer) push(b []byte) {
	_, err := a.w.Write(b)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	if err != nil {
		a.cut()
	}
}

func (a answer) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.ctx.Done():
		a.cut()
	}
}

// silence keeps the connection open and says nothing.
func (a answer) silence() {
	<-a.ctx.Done()
	a.cut()
}

// cut breaks the connection; it does not return.
func (a answer) cut() { panic(http.ErrAbortHandler) }

// encode is JSON without HTML's escapes.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("a reply that is no JSON: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
