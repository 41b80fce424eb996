package agentapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// post sends a body with a key, and returns the status and the body of the answer.
func post(t *testing.T, url, header, key, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set(header, key)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

const (
	call   = `{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}`
	output = `{"type":"function_call_output","call_id":"call_1","output":"found"}`
	hello  = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`
)

func TestResponses(t *testing.T) {
	for name, c := range map[string]struct{ key, body, want string }{
		"fine":             {"k", `{"model":"m","stream":true,"input":[` + hello + `,` + call + `,` + output + `]}`, ""},
		"wrong key":        {"wrong", `{"model":"m","stream":true,"input":[` + hello + `]}`, "invalid_api_key"},
		"no model":         {"k", `{"stream":true,"input":[` + hello + `]}`, "'model'"},
		"not streamed":     {"k", `{"model":"m","input":[` + hello + `]}`, "stream"},
		"no input":         {"k", `{"model":"m","stream":true,"input":"x"}`, "list of items"},
		"no output":        {"k", `{"model":"m","stream":true,"input":[` + call + `]}`, "No tool output found for function call call_1"},
		"output of none":   {"k", `{"model":"m","stream":true,"input":[` + output + `]}`, "No tool call found"},
		"the same id":      {"k", `{"model":"m","stream":true,"input":[` + call + `,` + output + `,` + call + `]}`, "id of its own"},
		"an unknown item":  {"k", `{"model":"m","stream":true,"input":[{"type":"x"}]}`, "Invalid value: 'x'"},
		"an unknown role":  {"k", `{"model":"m","stream":true,"input":[{"role":"x","content":"y"}]}`, "as role"},
		"an empty message": {"k", `{"model":"m","stream":true,"input":[{"role":"user","content":[]}]}`, "needs content"},
		"no JSON":          {"k", `{`, "could not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			status, body := post(t, s.URL()+"/v1/responses", "Authorization", "Bearer "+c.key, c.body)
			faults := len(s.Violations())
			if (c.want == "") != (status == http.StatusOK) || !strings.Contains(body, c.want) || (faults > 0) != (status == http.StatusBadRequest) {
				t.Errorf("%d, %d faults: %s", status, faults, body)
			}
		})
	}
}

// A stream names each item in output_item.done, and all of them in response.completed with the usage.
func TestResponsesStream(t *testing.T) {
	s := New(t)
	s.Reply(Reply{
		Text: "hi there", Uses: []ToolUse{{Namespace: "mcp__x", Name: "ping", Input: map[string]int{"a": 1}}, {Name: "exec", Input: "text(1)"}},
		Usage: Usage{In: 10, Out: 5, Cached: 4},
	})
	_, body := post(t, s.URL()+"/v1/responses", "Authorization", "Bearer k", `{"model":"m","stream":true,"input":[`+hello+`],
		"instructions":"be kind","tools":[{"type":"function","name":"f"},{"type":"namespace","name":"mcp__x","tools":[{"type":"function","name":"ping"}]}]}`)
	said, done := "", 0
	var last struct {
		Type     string
		Delta    string
		Response struct {
			Output []struct{ Type, Name, Namespace, Arguments, Input string }
			Usage  struct {
				In    int `json:"input_tokens"`
				Total int `json:"total_tokens"`
			}
		}
	}
	for frame := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		_, data, _ := strings.Cut(frame, "data: ")
		if err := json.Unmarshal([]byte(data), &last); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		switch last.Type {
		case "response.output_text.delta":
			said += last.Delta
		case "response.output_item.done":
			done++
		}
	}
	out := last.Response.Output
	if said != "hi there" || done != 3 || last.Type != "response.completed" || len(out) != 3 || last.Response.Usage.In != 10 || last.Response.Usage.Total != 15 ||
		out[1].Name != "ping" || out[1].Namespace != "mcp__x" || out[1].Arguments != `{"a":1}` || out[2].Type != "custom_tool_call" || out[2].Input != "text(1)" {
		t.Errorf("%q, %d items: %s", said, done, body)
	}
	q := s.Requests()[0]
	if strings.Join(q.Tools, " ") != "f mcp__x/ping" || !q.Has("hello") || q.Has("be kind") || q.System != "be kind" || q.Key != "k" {
		t.Errorf("%+v", q)
	}
}

func TestGenerate(t *testing.T) {
	const user, model = `{"role":"user","parts":[{"text":"hello"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}}]}`
	const result = `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"found"}}}]}`
	for name, c := range map[string]struct{ key, body, want string }{
		"fine":                {"k", `{"contents":[` + user + `,` + model + `,` + result + `]}`, `"finishReason":"STOP"`},
		"wrong key":           {"wrong", `{"contents":[` + user + `]}`, "UNAUTHENTICATED"},
		"no contents":         {"k", `{}`, "contents is not specified"},
		"no role":             {"k", `{"contents":[{"parts":[{"text":"x"}]}]}`, "the role user or model"},
		"no result":           {"k", `{"contents":[` + user + `,` + model + `,` + user + `]}`, "number of function response parts"},
		"a result of nothing": {"k", `{"contents":[` + result + `]}`, "number of function response parts"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			status, body := post(t, s.URL()+"/v1beta/models/m:streamGenerateContent?alt=sse", "X-Goog-Api-Key", c.key, c.body)
			faults := len(s.Violations())
			if !strings.Contains(body, c.want) || (faults > 0) != (status == http.StatusBadRequest) {
				t.Errorf("%d, %d faults: %s", status, faults, body)
			}
		})
	}
	s := New(t)
	s.Reply(Use("f", map[string]int{"a": 1}))
	_, body := post(t, s.URL()+"/v1beta/models/m:generateContent", "X-Goog-Api-Key", "k", `{"contents":[`+user+`],
		"systemInstruction":{"parts":[{"text":"be kind"}]},"tools":[{"functionDeclarations":[{"name":"f"}]}]}`)
	q := s.Requests()[0]
	if !strings.Contains(body, `"functionCall":{"args":{"a":1},"name":"f"}`) || q.System != "be kind" || strings.Join(q.Tools, " ") != "f" || !q.Has("hello") {
		t.Errorf("%s\n%+v", body, q)
	}
}
