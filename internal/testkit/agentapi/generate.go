package agentapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// generate is one exchange of generateContent: verb is the method after the colon.
type generate struct {
	exchange

	model, verb string
}

func (a *generate) serve(r *http.Request, raw []byte) {
	q, fault := a.parse(raw)
	q.Key = r.Header.Get("X-Goog-Api-Key")
	if a.verb == "countTokens" {
		a.JSON(http.StatusOK, obj{"totalTokens": max(1, len(raw)/bytesPerToken)})
		return
	}
	reply := next(a.exchange, q, fault)
	switch {
	case a.Begin(reply.Way):
	case reply.Status >= http.StatusBadRequest:
		a.JSON(reply.Status, googleError(reply.Status, fault))
	case a.verb == "streamGenerateContent" && r.URL.Query().Get("alt") == "sse":
		var s apiserver.Stream
		for _, chunk := range a.chunks(q, reply) {
			s.Events = append(s.Events, "data: "+encode(chunk)+"\r\n\r\n")
		}
		a.Stream(s, reply.Way)
	case a.verb == "generateContent":
		a.Whole(a.whole(q, reply), reply.Way)
	default:
		a.JSON(http.StatusNotFound, googleError(http.StatusNotFound, a.verb))
	}
}

// parse reads a request. fault is the first rule that it breaks.
func (a *generate) parse(raw []byte) (q Request, fault string) {
	q.Model, q.Raw = a.model, raw
	body, fault := object(raw)
	if fault != "" {
		return q, fault
	}
	system, _ := body["systemInstruction"].(obj)
	q.System = strings.Join(texts(system["parts"]), "\n")
	for _, tool := range list(body["tools"]) {
		q.Tools = append(q.Tools, toolNames("", tool["functionDeclarations"])...)
	}
	contents := list(body["contents"])
	if len(contents) == 0 {
		return q, "GenerateContentRequest.contents: contents is not specified"
	}
	calls := 0
	for i, c := range contents {
		parts := list(c["parts"])
		role := text(c, "role")
		if role != "user" && role != "model" || len(parts) == 0 {
			return q, fmt.Sprintf("contents[%d]: a content needs parts, and the role user or model", i)
		}
		made, answered := q.parts(parts)
		if answered != calls && (answered > 0 || calls > 0 && role == "user") {
			return q, "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		calls = made
	}
	return q, ""
}

// parts takes the parts of a content over, and counts the calls and their results.
func (q *Request) parts(parts []obj) (calls, results int) {
	for _, p := range parts {
		call, isCall := p["functionCall"].(obj)
		result, isResult := p["functionResponse"].(obj)
		switch {
		case isCall:
			calls++
			q.Said = append(q.Said, encode(call["args"]))
		case isResult:
			results++
			q.Said = append(q.Said, encode(result["response"]))
		case p["thought"] != true:
			q.Said = append(q.Said, text(p, "text"))
		}
	}
	return calls, results
}

func (a *generate) chunk(q Request, parts []obj, finish string, u *Usage) obj {
	candidate := obj{"content": obj{"parts": parts, "role": "model"}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	m := obj{"candidates": []obj{candidate}, "modelVersion": q.Model, "responseId": "r1"}
	if u != nil {
		m["usageMetadata"] = obj{
			"promptTokenCount": u.In, "candidatesTokenCount": u.Out, "totalTokenCount": u.In + u.Out, "cachedContentTokenCount": u.Cached,
		}
	}
	return m
}

func calls(uses []ToolUse) (parts []obj) {
	for _, use := range uses {
		input := use.Input
		if input == nil {
			input = obj{}
		}
		parts = append(parts, obj{"functionCall": obj{"name": use.Name, "args": input}})
	}
	return parts
}

func (a *generate) chunks(q Request, r Reply) (list []obj) {
	for _, piece := range apiserver.Pieces(r.Text) {
		list = append(list, a.chunk(q, []obj{{"text": piece}}, "", nil))
	}
	last := calls(r.Uses)
	if len(last) == 0 {
		last = []obj{{"text": ""}}
	}
	return append(list, a.chunk(q, last, "STOP", &r.Usage))
}

func (a *generate) whole(q Request, r Reply) obj {
	return a.chunk(q, slices.Concat([]obj{{"text": r.Text}}, calls(r.Uses)), "STOP", &r.Usage)
}

func googleError(status int, message string) obj {
	word := map[int]string{
		http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
		http.StatusNotFound: "NOT_FOUND", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE",
	}[status]
	if word == "" {
		word = "INTERNAL"
	}
	if status >= http.StatusInternalServerError {
		message = http.StatusText(status)
	}
	if message == "" {
		message = "API key not valid. Please pass a valid API key."
	}
	return obj{"error": obj{"code": status, "message": message, "status": word}}
}
