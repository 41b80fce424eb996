package provider

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

func delta(fields string) string { return `{"choices":[{"index":0,"delta":{` + fields + `}}]}` }

const stopped = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// outline is an answer in one line.
func outline(a Answer) string {
	var b strings.Builder
	for _, c := range a.Message.Content {
		fmt.Fprintf(&b, "%s(%s%s%s%s%s) ", c.Type, c.Text, c.Thinking, c.ID, c.Name, c.Input)
	}
	return b.String() + a.Stop
}

// How servers of OpenAI's kind depart from it.
func TestOpenAIQuirks(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  []string
		want string
	}{
		"reasoning of vLLM": {[]string{delta(`"reasoning":"h"`), delta(`"reasoning":"m","reasoning_content":"m"`), delta(`"content":"x"`), stopped, "[DONE]"},
			"thinking(hm) text(x) end_turn"},
		"no DONE":        {[]string{delta(`"content":"x"`), stopped}, "text(x) end_turn"},
		"other choices":  {[]string{`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, delta(`"content":"x"`), stopped, "[DONE]"}, "text(x) end_turn"},
		"null and empty": {[]string{delta(`"content":null,"tool_calls":null`), "", `{}`, `{"choices":null,"error":null}`, delta(`"content":"x"`), stopped}, "text(x) end_turn"},
		"parts of Mistral": {[]string{delta(`"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"x"}]`), stopped, "[DONE]"},
			"text(x) end_turn"},
		"refusal": {[]string{delta(`"refusal":"I will not"`), stopped, "[DONE]"}, "text(I will not) refusal"},
		"one number for all": {[]string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`),
			delta(`"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]`), stopped, "[DONE]"},
			"tool_use(af{}) tool_use(bg{}) tool_use"},
		"neither id nor number": {[]string{delta(`"tool_calls":[{"function":{"name":"f","arguments":"{}"}},{"function":{"name":"g","arguments":"{}"}}]`), stopped},
			"tool_use(call_2f{}) tool_use(call_3g{}) tool_use"},
		"no id, one number": {[]string{
			delta(`"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}]`), stopped},
			`tool_use(call_2f{}) tool_use(call_3f{"a":1}) tool_use`},
		"name in each fragment": {[]string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\""}}]`),
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]`),
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]`), stopped},
			`tool_use(af{"a":1}) tool_use`},
		"fragments mixed": {[]string{
			delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]`),
			delta(`"tool_calls":[{"index":1,"function":{"arguments":"{\"b\":"}},{"index":0,"function":{"arguments":"{\"a\":"}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":"2}"}}]`), stopped},
			`tool_use(af{"a":1}) tool_use(bg{"b":2}) tool_use`},
		"arguments as an object": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"a":1}}}]`), stopped},
			`tool_use(af{"a":1}) tool_use`},
		"arguments that are none": {[]string{delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{oops"}}]`), stopped},
			`tool_use(af{"not_an_object":"{oops"}) tool_use`},
		"a call of old": {[]string{
			delta(`"content":null,"function_call":{"name":"f","arguments":""}`), delta(`"function_call":{"arguments":"{\"a\":"}`),
			delta(`"function_call":{"name":"f","arguments":"1}"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"function_call"}]}`},
			`tool_use(call_2f{"a":1}) tool_use`},
		"a call of old, and of new": {[]string{
			delta(`"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`), stopped},
			`tool_use(af{}) tool_use`},
		"ids of before, odd names": {[]string{delta(`"tool_calls":[{"index":0,"id":"old","function":{"name":"a.b c","arguments":""}},{"index":1,"id":"call_3","function":{"name":""}}]`), stopped},
			`tool_use(call_2a_b_c{}) tool_use(call_3unnamed{}) tool_use`},
	} {
		t.Run(name, func(t *testing.T) {
			s := openaiapi.New(t)
			s.Reply(openaiapi.Reply{Raw: tc.raw})
			r := ask("hi")
			r.Messages = append(r.Messages,
				transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.ToolUse, ID: "old", Name: "f"}}},
				transcript.Message{Role: transcript.User, Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: "old", Content: "x"}}})
			a, err := NewOpenAI(Options{BaseURL: s.URL()}).Ask(t.Context(), r, nil)
			if err != nil || outline(a) != tc.want {
				t.Errorf("%s %v", outline(a), err)
			}
		})
	}
}

func TestOpenAIUsage(t *testing.T) {
	for usage, want := range map[string]runlog.Usage{
		`{"prompt_tokens":10,"completion_tokens":3}`:                                                                                      {In: 10, Out: 3},
		`{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":null}`:                                                         {In: 10, Out: 3},
		`{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":4}`:                                                          {In: 6, Out: 3, CacheRead: 4},
		`{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":5}}`:                   {In: 1, Out: 3, CacheRead: 4, CacheWrite: 5},
		`{"prompt_tokens":3,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"cost":0.1,"new":{"a":1}}`: {Out: 3, CacheRead: 4},
	} {
		s := openaiapi.New(t)
		s.Reply(openaiapi.Reply{Raw: []string{stopped, `{"choices":[],"usage":` + usage + `}`, "[DONE]"}})
		if a, err := NewOpenAI(Options{BaseURL: s.URL()}).Ask(t.Context(), ask("hi"), nil); err != nil || a.Usage != want {
			t.Errorf("%s: %+v %v", usage, a.Usage, err)
		}
	}
}

// raw serves one response as it is.
func raw(t *testing.T, status int, kind, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		if kind == "" {
			w.Header()["Content-Type"] = nil
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestOpenAIErrors(t *testing.T) {
	busy := errors.New("overloaded")
	text := "data: " + delta(`"content":"x"`) + "\n\n"
	for name, tc := range map[string]struct {
		status     int
		kind, body string
		is         error // nil: none that a caller acts on
		says       string
	}{
		"code":                {400, "application/json", `{"error":{"message":"no","type":"invalid_request_error","code":"context_length_exceeded"}}`, ErrTooLong, "no"},
		"no credit":           {429, "application/json", `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`, engine.ErrUnavailable, "no credit"},
		"llama.cpp":           {400, "application/json", `{"error":{"code":400,"message":"big","type":"exceed_context_size_error","n_ctx":256}}`, ErrTooLong, "big"},
		"llama.cpp loading":   {503, "application/json", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, busy, "Loading model"},
		"text":                {400, "text/plain", "what is this?", nil, "what is this?"},
		"error as text":       {404, "application/json", `{"error":"model 'x' not found"}`, engine.ErrModel, "model 'x' not found"},
		"FastAPI":             {422, "application/json", `{"detail":[{"msg":"field required"}]}`, nil, "field required"},
		"vLLM of old":         {404, "application/json", `{"object":"error","message":"The model does not exist.","type":"NotFoundError","code":404}`, engine.ErrModel, "claude-opus"},
		"Gemini":              {400, "application/json", `[{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed","status":"INVALID_ARGUMENT"}}]`, ErrTooLong, "2000000"},
		"OpenRouter":          {400, "application/json", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"m\":\"prompt is too long\"}"}}}`, ErrTooLong, "too long"},
		"OpenRouter's model":  {400, "application/json", `{"error":{"message":"x is not a valid model ID","code":400}}`, engine.ErrModel, "claude-opus"},
		"no access":           {403, "application/json", `{"error":{"message":"Project p does not have access to model claude-opus","type":"invalid_request_error","code":"model_not_found"}}`, engine.ErrModel, "does not have access"},
		"no permission":       {403, "application/json", `{"error":{"message":"Your API key does not have permission to use the specified resource."}}`, engine.ErrModel, "permission"},
		"refused key":         {403, "application/json", `{"error":{"message":"Country not supported"}}`, engine.ErrKey, "not supported"},
		"page":                {502, "text/html", "<html>Bad gateway</html>", busy, "Bad Gateway"},
		"wrong path":          {404, "text/html", "<html>nothing</html>", engine.ErrUnavailable, "base URL"},
		"error with 200":      {200, "application/json", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, ErrTooLong, "available"},
		"whole":               {200, "application/json", `{"choices":[]}`, ErrGarbled, "application/json"},
		"no content":          {204, "", ``, ErrGarbled, "204"},
		"error in the stream": {200, "text/event-stream", text + `data: {"error":{"message":"gone","type":"server_error","code":null}}` + "\n\n", busy, "gone"},
		"with choices":        {200, "text/event-stream", text + `data: {"id":"1","error":{"code":429,"message":"slow"},"choices":[{"finish_reason":"error"}]}` + "\n\n", busy, "slow"},
		"vLLM in the stream":  {200, "text/event-stream", text + `data: {"object":"error","message":"maximum context length is 1","type":"BadRequestError","code":400}` + "\n\ndata: [DONE]\n\n", ErrTooLong, "is 1"},
		"text in the stream":  {200, "text/event-stream", text + `data: {"id":"1","error":"boom"}` + "\n\n", busy, "boom"},
		"Ollama's stream":     {200, "text/event-stream", text + `data: {"error":"model runner has unexpectedly stopped"}` + "\n\n", busy, "unexpectedly stopped"},
		"llama.cpp's stream":  {200, "text/event-stream", text + `error: {"code":500,"message":"failed to decode","type":"server_error"}` + "\n\n", busy, "failed to decode"},
		"llama.cpp's limit":   {200, "text/event-stream", text + `error: {"code":400,"message":"big","type":"exceed_context_size_error"}` + "\n\n", ErrTooLong, "big"},
		"refused in a stream": {200, "text/event-stream", text + `error: {"code":400,"message":"bad grammar"}` + "\n\n", nil, "bad grammar"},
		"error by name":       {200, "text/event-stream", text + "event: error\ndata: {\"message\":\"gone\"}\n\n", busy, "gone"},
		"error as no JSON":    {200, "text/event-stream", text + "error: out of memory\n\n", busy, "out of memory"},
		"error as no event":   {200, "text/event-stream", text + `{"error":{"message":"gone","type":"server_error"}}` + "\n", busy, "gone"},
		"no reason to stop":   {200, "text/event-stream", text + "data: [DONE]\n\n", ErrCut, ""},
		"not an event":        {200, "text/event-stream", text + "data: hello\n\n", ErrGarbled, "an invalid event"},
		"wrong type":          {200, "text/event-stream", `data: {"choices":"none"}` + "\n\n", ErrGarbled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := NewOpenAI(Options{BaseURL: raw(t, tc.status, tc.kind, tc.body)}).Ask(t.Context(), ask("hi"), nil)
			_, isBusy := errors.AsType[*engine.Overloaded](err)
			acted := isBusy || errors.Is(err, engine.ErrUnavailable) || errors.Is(err, ErrTooLong) || errors.Is(err, ErrCut) || errors.Is(err, ErrGarbled)
			is := errors.Is(err, tc.is) || tc.is == nil && !acted || errors.Is(tc.is, busy) && isBusy
			if err == nil || !strings.Contains(err.Error(), tc.says) || !is {
				t.Errorf("%v", err)
			}
			if strings.HasPrefix(tc.body, text) && a.Message.Text() != "x" {
				t.Errorf("lost what had come: %+v", a)
			}
		})
	}
}

// Comments keep a connection alive, many of them too, and a missing type of the content is no fault.
func TestOpenAIComments(t *testing.T) {
	body := strings.Repeat(": OPENROUTER PROCESSING\n\n", 2000) + "data: " + delta(`"content":"x"`) + "\n\nevent: done\ndata:" + stopped + "\n\n"
	a, err := NewOpenAI(Options{BaseURL: raw(t, 200, "", body)}).Ask(t.Context(), ask("hi"), nil)
	if err != nil || outline(a) != "text(x) end_turn" {
		t.Errorf("%s %v", outline(a), err)
	}
}

func event(data string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
	return "event: " + name + "\ndata: " + data + "\n\n"
}

func TestAnthropicEvents(t *testing.T) {
	start := event(`{"type":"message_start","message":{"usage":{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":3,"output_tokens":1}}}`)
	end := event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`) + event(`{"type":"message_stop"}`)
	limit := strings.Replace(end, "end_turn", "max_tokens", 1)
	use := event(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`)
	input := func(text string) string {
		return event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"` + text + `"}}`)
	}
	stop := event(`{"type":"content_block_stop","index":1}`)
	for name, tc := range map[string]struct{ body, want string }{
		"unknown": {start + event(`{"type":"ping"}`) + event(`{"type":"new_event","index":0}`) +
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"new_block","data":{"a":[1]}}}`) +
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"new_delta","new":1}}`) + event(`{"type":"content_block_stop","index":0}`) +
			event(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}`) +
			event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}`) +
			event(`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{}}}`) + stop + end, "text(ab) end_turn"},
		"redacted": {start + event(`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"xyz"}}`) +
			event(`{"type":"content_block_stop","index":0}`) + end, "redacted_thinking() end_turn"},
		"omitted thinking": {start + event(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`) +
			event(`{"type":"content_block_stop","index":0}`) + end, "thinking() end_turn"},
		"empty text":     {start + event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) + end, "end_turn"},
		"input at once":  {start + strings.Replace(use, "{}", `{"a":1}`, 1) + stop + end, `tool_use(af{"a":1}) tool_use`},
		"no input":       {start + use + input("") + stop + end, "tool_use(af{}) tool_use"},
		"bad input":      {start + use + input("[1]") + stop + end, `tool_use(af{"not_an_object":"[1]"}) tool_use`},
		"cut at limit":   {start + use + input("{") + stop + limit, "max_tokens"},
		"empty at limit": {start + use + input("") + stop + limit, "max_tokens"},
		"fine at limit":  {start + use + input("{}") + stop + limit, "tool_use(af{}) max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := NewAnthropic(Options{BaseURL: raw(t, 200, "text/event-stream", tc.body)}).Ask(t.Context(), ask("hi"), nil)
			if err != nil || outline(a) != tc.want || a.Usage != (runlog.Usage{In: 9, Out: 7, CacheRead: 4, CacheWrite: 3}) {
				t.Errorf("%s %+v %v", outline(a), a.Usage, err)
			}
		})
	}
	text := event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`)
	a, err := NewAnthropic(Options{BaseURL: raw(t, 200, "text/event-stream", text+end)}).Ask(t.Context(), ask("hi"), nil)
	if !errors.Is(err, ErrGarbled) || !strings.Contains(err.Error(), "message_start") || a.Stop != "" {
		t.Errorf("no message_start: %+v %v", a, err)
	}
	a, err = NewAnthropic(Options{BaseURL: raw(t, 200, "text/event-stream", start)}).Ask(t.Context(), ask("hi"), nil)
	if !errors.Is(err, ErrCut) || a.Usage.In != 9 {
		t.Errorf("what a broken answer has cost: %+v %v", a, err)
	}
}

func TestAnthropicErrors(t *testing.T) {
	for kind, want := range map[string]error{"invalid_request_error": nil, "authentication_error": engine.ErrUnavailable, "billing_error": engine.ErrUnavailable, "request_too_large": ErrTooLong} {
		body := event(`{"type":"error","error":{"type":"` + kind + `","message":"m"}}`)
		_, err := NewAnthropic(Options{BaseURL: raw(t, 200, "text/event-stream", body)}).Ask(t.Context(), ask("hi"), nil)
		if _, busy := errors.AsType[*engine.Overloaded](err); err == nil || busy || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, kind := range []string{"overloaded_error", "rate_limit_error", "api_error", "timeout_error", "new_error"} {
		body := event(`{"type":"error","error":{"type":"` + kind + `","message":"m"}}`)
		_, err := NewAnthropic(Options{BaseURL: raw(t, 200, "text/event-stream", body)}).Ask(t.Context(), ask("hi"), nil)
		overloaded(t, err)
	}
	body := `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`
	_, err := NewAnthropic(Options{BaseURL: raw(t, 400, "application/json", body)}).Ask(t.Context(), ask("hi"), nil)
	if !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "no credit") {
		t.Errorf("%v", err)
	}
}

// Whatever a service says, its error is one line and ends.
func FuzzRefusal(f *testing.F) {
	for _, seed := range []string{`{"error":{"message":"m","type":"t","code":1}}`, `[{"error":"x"}]`, `{"detail":[]}`, "<p>", "text\n", `{"error":{"metadata":{"raw":1}}}`} {
		f.Add([]byte(seed), 400)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		x := &exchange{o: Options{Key: "k3y"}, host: "h"}
		r := x.refusal(body)
		r.status = status
		said := r.err().Error()
		if strings.ContainsAny(said, "\n\r\x1b") || len(said) > 10*maxSaid || bytes.Contains([]byte(said), []byte("k3y")) {
			t.Errorf("%q", said)
		}
	})
}
