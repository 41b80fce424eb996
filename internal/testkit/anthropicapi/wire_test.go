package anthropicapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

func TestStreamOfText(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Text: "Hello, world <&> äöü 🦊", Usage: Usage{In: 10, Out: 20, CacheRead: 30, CacheWrite: 40}})
	resp := post(t, s, "/v1/messages?beta=true", streamed(ask("hi")))
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream; charset=utf-8" || !strings.HasPrefix(resp.Header.Get("Request-Id"), "req_") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	list, err := reader(resp.Body).all()
	if err != nil {
		t.Fatal(err)
	}
	want := "message_start content_block_start ping " + strings.Repeat("content_block_delta ", apiserver.MaxPieces) + "content_block_stop message_delta message_stop"
	if names(list) != want {
		t.Errorf("got  %s\nwant %s", names(list), want)
	}
	id := join(t, list).ID
	for i, want := range map[int]string{
		0: `{"type":"message_start","message":{"id":"` + id + `","type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":40,"cache_read_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":40,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}`,
		1: `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		2: `{"type":"ping"}`,
		3: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		6: `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"> äöü"}}`,
		8: `{"type":"content_block_stop","index":0}`,
		9: `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"input_tokens":10,"cache_creation_input_tokens":40,"cache_read_input_tokens":30,"output_tokens":20}}`,
	} {
		if list[i].data != want {
			t.Errorf("event %d\ngot  %s\nwant %s", i, list[i].data, want)
		}
	}
}

func TestStreamOfThoughtAndTools(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Thinking: "hmm, so", Text: "I look", ToolUses: []ToolUse{{Name: "Read", Input: obj{"file_path": "/ä<b>", "limit": 3}}, {ID: "mine", Name: "Stop"}}})
	list, err := reader(post(t, s, "/v1/messages", streamed(ask("hi"))).Body).all()
	if err != nil {
		t.Fatal(err)
	}
	m := join(t, list)
	want := []part{
		{Type: "thinking", Thinking: "hmm, so", Signature: signature("hmm, so")},
		{Type: "text", Text: "I look"},
		{Type: "tool_use", ID: "toolu_1", Name: "Read", Input: json.RawMessage(`{"file_path":"/ä<b>","limit":3}`)},
		{Type: "tool_use", ID: "mine", Name: "Stop", Input: json.RawMessage(`{}`)},
	}
	if !reflect.DeepEqual(m.Content, want) || *m.Stop != "tool_use" {
		t.Errorf("%+v %s", m.Content, *m.Stop)
	}
	var partial []string
	for _, e := range list {
		if strings.Contains(e.data, "input_json_delta") && strings.Contains(e.data, `"index":2`) {
			partial = append(partial, e.data)
		}
	}
	if len(partial) != 1+apiserver.MaxPieces || !strings.Contains(partial[0], `"partial_json":""`) {
		t.Errorf("the input comes as %q", partial)
	}
	if n := strings.Count(names(list), "ping"); n != 1 {
		t.Errorf("%d pings", n)
	}
}

// Whatever a reply says, streamed and whole are the same message.
func TestStreamedAndWholeAgree(t *testing.T) {
	s := New(t)
	same := func(thinking, text, in string, tools uint8, u [4]uint16) bool {
		r := Reply{Thinking: thinking, Text: text, Usage: Usage{In: int(u[0]) + 1, Out: int(u[1]), CacheRead: int(u[2]), CacheWrite: int(u[3])}}
		for i := range tools % 4 {
			r.ToolUses = append(r.ToolUses, ToolUse{ID: fmt.Sprintf("t%d", i), Name: "T", Input: obj{"a": in, "b": []any{in, nil, i}}})
		}
		s.Reply(r, r)
		list, err := reader(post(t, s, "/v1/messages", streamed(ask("hi"))).Body).all()
		if err != nil {
			t.Fatal(err)
		}
		got := join(t, list)
		var whole reply
		resp := post(t, s, "/v1/messages", ask("hi"))
		if err := json.NewDecoder(resp.Body).Decode(&whole); err != nil || resp.Header.Get("Content-Type") != "application/json" {
			t.Fatal(err, resp.Header)
		}
		if got.ID == whole.ID {
			t.Errorf("two messages with the id %s", got.ID)
		}
		got.ID = whole.ID
		if len(got.Content) == 0 {
			got.Content = whole.Content
		}
		if !reflect.DeepEqual(got, whole) {
			t.Errorf("streamed %+v\nwhole    %+v", got, whole)
		}
		return !t.Failed()
	}
	if err := quick.Check(same, &quick.Config{MaxCount: 60}); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	s := New(t)
	for name, tc := range map[string]struct {
		reply  Reply
		status int
		kind   string
		retry  string
		says   string
	}{
		"401":        {Reply{Status: 401}, 401, "authentication_error", "false", "invalid x-api-key"},
		"by type":    {Reply{ErrorType: "overloaded_error"}, 529, "overloaded_error", "true", "Overloaded"},
		"429":        {Reply{Status: 429, RetryAfter: "7"}, 429, "rate_limit_error", "true", "rate limit"},
		"404":        {Reply{Status: 404, Message: "model: claude-x"}, 404, "not_found_error", "false", "model: claude-x"},
		"500":        {Reply{Status: 500}, 500, "api_error", "true", "Internal server error"},
		"413":        {Reply{Status: 413}, 413, "request_too_large", "false", "maximum size"},
		"both":       {Reply{Status: 500, ErrorType: "overloaded_error"}, 500, "overloaded_error", "true", "Internal Server Error"},
		"no such":    {Reply{Status: 418}, 418, "api_error", "false", "I'm a teapot"},
		"new type":   {Reply{ErrorType: "new_error"}, 500, "new_error", "true", "Internal"},
		"event":      {Reply{Fault: apiserver.ErrorEvent}, 529, "overloaded_error", "true", "Overloaded"},
		"own header": {Reply{Status: 401, Header: http.Header{"x-should-retry": {"true"}}}, 401, "authentication_error", "true", "invalid"},
		"no header":  {Reply{Status: 401, Header: http.Header{"x-should-retry": nil}}, 401, "authentication_error", "", "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Reply(tc.reply)
			resp := post(t, s, "/v1/messages", ask("hi"))
			var body struct {
				Type    string
				Error   struct{ Type, Message string }
				Request string `json:"request_id"`
			}
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tc.status || body.Type != "error" || body.Error.Type != tc.kind || !strings.Contains(body.Error.Message, tc.says) {
				t.Errorf("%d %+v", resp.StatusCode, body)
			}
			h := resp.Header
			if h.Get("X-Should-Retry") != tc.retry || h.Get("Retry-After") != tc.reply.RetryAfter || h.Get("Request-Id") != body.Request || body.Request == "" {
				t.Errorf("%v", h)
			}
		})
	}
}

func TestOtherPaths(t *testing.T) {
	s := New(t)
	for _, tc := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"HEAD", "/", 404, ""},
		{"GET", "/", 404, `"not_found_error"`},
		{"POST", "/v1/complete", 404, `"Not Found"`},
		{"GET", "/v1/messages", 405, `"Method Not Allowed"`},
		{"POST", "/v1/messages", 401, `"x-api-key header is required"`},
		{"POST", "/v1/messages/count_tokens", 401, `"authentication_error"`},
	} {
		resp, err := send(t, tc.method, s.URL()+tc.path, "", nil)
		if err != nil {
			t.Fatal(tc, err)
		}
		if body := resp.text(t); resp.StatusCode != tc.status || !strings.Contains(body, tc.says) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, resp.StatusCode, body)
		}
	}
	if got := strings.Join(s.Hits(), ", "); !strings.HasPrefix(got, "HEAD /, GET /, POST /v1/complete") || len(s.Requests()) != 1 {
		t.Errorf("hits %s, %d requests", got, len(s.Requests()))
	}
	if v := s.Violations(); v != nil {
		t.Errorf("violations %q", v)
	}
}

func TestBearerWithoutToken(t *testing.T) {
	s := New(t)
	if resp, err := send(t, http.MethodPost, s.URL()+"/v1/messages", "{}", http.Header{"Authorization": {"Bearer "}}); err != nil || resp.StatusCode != 401 {
		t.Error(resp.StatusCode, err)
	}
}

func TestCountTokens(t *testing.T) {
	s := New(t)
	long := ask(strings.Repeat("word ", 800))
	if body := post(t, s, "/v1/messages/count_tokens", with(long, "max_tokens", nil)).text(t); body != `{"input_tokens":1017}` {
		t.Error(body)
	}
	if body := post(t, s, "/v1/messages/count_tokens", obj{"model": "m"}).text(t); !strings.Contains(body, "messages: Field required") {
		t.Error(body)
	}
	if len(s.Requests()) != 0 || len(s.Violations()) != 1 {
		t.Errorf("%d requests, violations %q", len(s.Requests()), s.Violations())
	}
}

func TestTooLarge(t *testing.T) {
	resp := post(t, New(t), "/v1/messages", strings.Repeat(" ", maxBody+1))
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(resp.StatusCode)
	}
}
