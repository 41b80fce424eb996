package openaiapi

import (
	"encoding/json"
	"net/http"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// search is the body of a request to POST /v1/responses.
type search struct {
	Model           string `json:"model"`
	Input           string `json:"input"`
	Instructions    string `json:"instructions"`
	Stream          bool   `json:"stream"`
	MaxToolCalls    int    `json:"max_tool_calls"`
	MaxOutputTokens int    `json:"max_output_tokens"`
	Tools           []struct {
		Type    string `json:"type"`
		Filters *struct {
			Allowed []string `json:"allowed_domains"`
		} `json:"filters"`
	} `json:"tools"`
}

// Page is a result of the service's search.
type Page struct{ Title, URL string }

// search answers a request of the Responses API with the search tool.
func (a answer) search(header http.Header, raw []byte) {
	q := request{Header: header.Clone(), Raw: raw, Search: &search{}}
	err := json.Unmarshal(raw, q.Search)
	q.Model, q.Stream = q.Search.Model, q.Search.Stream
	a.Record(q)
	if s := q.Search; err != nil || s.Model == "" || s.Input == "" || !s.Stream || len(s.Tools) != 1 || s.Tools[0].Type != "web_search" {
		a.Violation("not a streamed request with the tool web_search alone: " + string(raw))
		a.fail(Reply{Status: http.StatusBadRequest})
		return
	}
	r := a.Next(q)
	switch {
	case a.Begin(r.way()):
	case r.Status >= 400:
		a.fail(r)
	default:
		a.Stream(apiserver.Stream{Events: r.responseEvents(q)}, r.way())
	}
}

// responseEvents is the events of the Responses API that deliver r.
func (r Reply) responseEvents(q request) (list []string) {
	event := func(kind string, body obj) {
		body["type"] = kind
		list = append(list, "event: "+kind+"\n"+frame(encode(body)))
	}
	var sources, citations []obj
	for _, p := range r.Found {
		sources = append(sources, obj{"type": "url", "url": p.URL})
		if p.Title != "" {
			citations = append(citations, obj{"type": "url_citation", "title": p.Title, "url": p.URL, "start_index": 0, "end_index": 1})
		}
	}
	output := []obj{
		{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": obj{"type": "search", "query": "x", "sources": sources}},
		{"type": "web_search_call", "id": "ws_2", "status": "completed", "action": obj{"type": "open_page", "url": "https://example.com"}},
		{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []obj{{"type": "output_text", "text": r.Text, "annotations": citations}}},
	}
	u := r.Usage
	event("response.created", obj{"response": obj{"id": "resp_1", "status": "in_progress", "model": q.Model, "output": []obj{}}})
	event("response.output_text.delta", obj{"delta": r.Text})
	event("response.completed", obj{"response": obj{"id": "resp_1", "status": "completed", "model": q.Model, "output": output,
		"usage": obj{"input_tokens": u.In, "output_tokens": u.Out, "input_tokens_details": obj{"cached_tokens": u.Cached}}}})
	return list
}
