package anthropicapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// Reply is one response of the API. A zero Reply is a model that ends its turn without text.
type Reply struct {
	Thinking   string    // a block before the text, signed
	Text       string    // "" sends no text block
	Found      []Page    // what the service's own search has found, before the text; one search
	SearchFail string    // the error code of that search instead
	ToolUses   []ToolUse // in this order after the text
	StopReason string    // "": tool_use with tool uses, else end_turn
	Usage      Usage     // zero: a guess by the length

	Hold        <-chan struct{} // wait for it to be closed before anything is sent
	Delay       time.Duration   // wait before the headers
	StreamDelay time.Duration   // wait before each event

	// An error instead of a message. Either of the first two is enough: the other follows from it, and so does the
	// message.
	Status     int    // of HTTP, such as 529
	ErrorType  string // such as overloaded_error
	Message    string
	RetryAfter string // the header retry-after: seconds or an HTTP date

	Header http.Header // more response headers; they win over the server's own, and one without values removes it

	// The fault of the response. The events of a plain text are message_start, content_block_start, ping, some
	// content_block_delta, content_block_stop, message_delta, message_stop: After 1 is before any content, 4 in the middle
	// of it. An event of ErrorEvent has ErrorType and Message, else overloaded_error.
	Fault apiserver.Fault
	After int // how many events arrive before Cut, Short, Silent, Malformed and ErrorEvent
}

// Page is a result of the service's search.
type Page struct{ Title, URL, Age string }

// ToolUse is a call of a tool by the model.
type ToolUse struct {
	ID    string // "": toolu_1, toolu_2, …
	Name  string
	Input any // becomes a JSON object; nil is {}
}

// Use returns a reply that calls one tool.
func Use(name string, input any) Reply {
	return Reply{ToolUses: []ToolUse{{Name: name, Input: input}}}
}

// Usage is counted in tokens. In excludes those of the cache, as in the API.
type Usage struct {
	In, Out, CacheRead, CacheWrite int
}

func (r Reply) way() apiserver.Way {
	return apiserver.Way{Hold: r.Hold, Delay: r.Delay, StreamDelay: r.StreamDelay, Header: r.Header, Fault: r.Fault, After: r.After}
}

// kinds returns the errors of the API. The first of a status is its default.
func kinds() []Reply {
	return []Reply{
		{Status: 400, ErrorType: "invalid_request_error", Message: "Error"},
		{Status: 401, ErrorType: "authentication_error", Message: "invalid x-api-key"},
		{Status: 402, ErrorType: "billing_error", Message: "Your credit balance is too low to access the Anthropic API."},
		{Status: 403, ErrorType: "permission_error", Message: "Your API key does not have permission to use the specified resource."},
		{Status: 404, ErrorType: "not_found_error", Message: "Not Found"},
		{Status: 405, ErrorType: "invalid_request_error", Message: "Method Not Allowed"},
		{Status: 413, ErrorType: "request_too_large", Message: "Request exceeds the maximum size"},
		{Status: 429, ErrorType: "rate_limit_error", Message: "This request would exceed your account's rate limit. Please try again later."},
		{Status: 500, ErrorType: "api_error", Message: "Internal server error"},
		{Status: 504, ErrorType: "timeout_error", Message: "Request timed out"},
		{Status: 529, ErrorType: "overloaded_error", Message: "Overloaded"},
	}
}

// isError reports whether r is an HTTP error. An error event is one too if the response is not streamed.
func (r Reply) isError(streamed bool) bool {
	if r.Fault == apiserver.ErrorEvent {
		return !streamed
	}
	return r.Status >= 400 || r.ErrorType != ""
}

// completed fills in the unset fields of an error.
func (r Reply) completed() Reply {
	if r.Status == 0 && r.ErrorType == "" {
		r.Status = 529
	}
	for _, k := range kinds() {
		if (r.Status == 0 || r.Status == k.Status) && (r.ErrorType == "" || r.ErrorType == k.ErrorType) {
			r.Status, r.ErrorType, r.Message = k.Status, k.ErrorType, cmp.Or(r.Message, k.Message)
			return r
		}
	}
	r.Status, r.ErrorType = cmp.Or(r.Status, http.StatusInternalServerError), cmp.Or(r.ErrorType, "api_error")
	r.Message = cmp.Or(r.Message, http.StatusText(r.Status))
	return r
}

func (r Reply) stopReason() string {
	if r.StopReason == "" && len(r.ToolUses) > 0 {
		return "tool_use"
	}
	return cmp.Or(r.StopReason, "end_turn")
}
