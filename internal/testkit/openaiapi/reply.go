package openaiapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// Reply is one response. A zero Reply is a model that stops without text.
type Reply struct {
	Reasoning string // before the text; as reasoning_content unless Field says otherwise
	Field     string // of the reasoning, such as reasoning
	Text      string
	Found     []Page // of a request with the search tool
	ToolCalls []ToolCall
	Finish    string // "": tool_calls with tool calls, else stop
	Usage     Usage  // zero: a guess by the length

	Raw    []string // the data of events that are sent instead of the above and of [DONE]
	NoDone bool     // leave out [DONE]

	Hold        <-chan struct{} // wait for it to be closed before anything is sent
	Delay       time.Duration   // wait before the headers
	StreamDelay time.Duration   // wait before each event

	// An error instead of an answer, and for ErrorEvent.
	Status     int // of HTTP, such as 529
	Kind       string
	Code       string
	Message    string
	RetryAfter string // the header retry-after: seconds or an HTTP date

	Header http.Header // more response headers; they win over the server's own, and one without values removes it

	Fault apiserver.Fault // the first event of a stream is the role, the next are pieces of content
	After int             // how many events arrive before Cut, Short, Silent, Malformed and ErrorEvent
}

// ToolCall is a call of a tool by the model.
type ToolCall struct {
	ID        string // "": call_t1, call_t2, …
	Name      string
	Arguments string // as written by the model, normally a JSON object
}

// Usage is counted in tokens. In includes those of the cache, as with OpenAI.
type Usage struct {
	In, Out, Cached int
}

func (r Reply) way() apiserver.Way {
	return apiserver.Way{Hold: r.Hold, Delay: r.Delay, StreamDelay: r.StreamDelay, Header: r.Header, Fault: r.Fault, After: r.After}
}

// completed fills in the unset fields of an error.
func (r Reply) completed() Reply {
	for _, k := range []Reply{
		{Status: 400, Kind: "invalid_request_error", Message: "Bad request"},
		{Status: 401, Kind: "invalid_request_error", Code: "invalid_api_key", Message: "Incorrect API key provided."},
		{Status: 402, Kind: "insufficient_balance", Message: "Insufficient Balance"},
		{Status: 403, Kind: "invalid_request_error", Message: "Country, region, or territory not supported"},
		{Status: 404, Kind: "invalid_request_error", Code: "model_not_found", Message: "The model does not exist or you do not have access to it."},
		{Status: 429, Kind: "requests", Code: "rate_limit_exceeded", Message: "Rate limit reached."},
		{Status: 503, Kind: "service_unavailable", Message: "The engine is currently overloaded, please try again later"},
		{Status: r.Status, Kind: "server_error", Message: cmp.Or(http.StatusText(r.Status), "The server had an error while processing your request.")},
	} {
		if r.Status == k.Status {
			r.Kind, r.Message = cmp.Or(r.Kind, k.Kind), cmp.Or(r.Message, k.Message)
			r.Code = cmp.Or(r.Code, k.Code)
			break
		}
	}
	return r
}

func (r Reply) finish() string {
	if r.Finish == "" && len(r.ToolCalls) > 0 {
		return "tool_calls"
	}
	return cmp.Or(r.Finish, "stop")
}
