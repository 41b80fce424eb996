package openaiapi

import (
	"cmp"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// answer is the response to one request.
type answer struct{ exchange }

type obj = map[string]any

func (a answer) give(q request, r Reply) {
	switch {
	case a.Begin(r.way()):
	case r.Status >= 400 && r.Fault != apiserver.ErrorEvent:
		a.fail(r)
	case q.Stream:
		a.stream(q, r)
	default:
		var calls []obj
		for i, c := range r.ToolCalls {
			calls = append(calls, r.call(i, c.Arguments))
		}
		message := obj{"role": "assistant", "content": r.Text, "tool_calls": calls}
		a.Whole(obj{"id": "chatcmpl-1", "object": "chat.completion", "model": q.Model,
			"choices": []obj{{"index": 0, "message": message, "finish_reason": r.finish()}}, "usage": r.usage(q)}, r.way())
	}
}

// fail sends an error of the service.
func (a answer) fail(r Reply) {
	a.Header("Retry-After", r.RetryAfter)
	r = r.completed()
	a.JSON(r.Status, r.problem())
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
func (a answer) stream(q request, r Reply) {
	if r.Fault == apiserver.Endless {
		r.Text = cmp.Or(r.Text, "and so on ")
	}
	s := apiserver.Stream{Endless: 1, Malformed: frame(`{"id":"chatcmpl-1","choices":[{"ind`), Error: frame(encode(r.problem()))}
	for _, data := range r.events(q) {
		s.Events = append(s.Events, frame(data))
	}
	a.Stream(s, r.way())
}

// frame returns an event in its wire format.
func frame(data string) string { return "data: " + data + "\n\n" }

func encode(v any) string { return string(apiserver.Encode(v)) }

// events returns the data of the stream that delivers r.
func (r Reply) events(q request) (list []string) {
	if r.Raw != nil {
		return r.Raw
	}
	chunk := func(delta obj, finish any) {
		choices := []obj{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		list = append(list, encode(q.chunk(choices, nil)))
	}
	chunk(obj{"role": "assistant", "content": ""}, nil)
	for _, p := range apiserver.Pieces(r.Reasoning) {
		chunk(obj{"content": nil, cmp.Or(r.Field, "reasoning_content"): p}, nil)
	}
	for _, p := range apiserver.Pieces(r.Text) {
		chunk(obj{"content": p}, nil)
	}
	for i, c := range r.ToolCalls {
		chunk(obj{"tool_calls": []obj{r.call(i, "")}}, nil)
		for _, p := range apiserver.Pieces(c.Arguments) {
			chunk(obj{"tool_calls": []obj{{"index": i, "function": obj{"arguments": p}}}}, nil)
		}
	}
	chunk(obj{}, r.finish())
	if q.IncludeUsage {
		list = append(list, encode(q.chunk([]obj{}, r.usage(q))))
	}
	if !r.NoDone {
		list = append(list, "[DONE]")
	}
	return list
}

func (q request) chunk(choices []obj, usage obj) obj {
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

const bytesPerToken = 4 // a common rule of thumb instead of a tokenizer

func (r Reply) usage(q request) obj {
	u := r.Usage
	if u == (Usage{}) {
		u = Usage{In: max(1, len(q.Raw)/bytesPerToken), Out: max(1, (len(r.Text)+len(r.Reasoning))/bytesPerToken)}
	}
	return obj{"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out,
		"prompt_tokens_details": obj{"cached_tokens": u.Cached, "audio_tokens": 0}}
}
