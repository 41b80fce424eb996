package openaiapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func post(t *testing.T, s *Server, body string) (status int, answer string, err error) {
	t.Helper()
	resp, err := http.Post(s.URL()+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

const (
	hi   = `{"role":"user","content":"hi"}`
	used = `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	done = `{"role":"tool","tool_call_id":"c1","content":"x"}`
)

func TestChecks(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"fine":            {`{"model":"m","messages":[{"role":"system","content":"s"},` + hi + `,` + used + `,` + done + `,` + hi + `]}`, ""},
		"not JSON":        {`{`, "could not parse"},
		"unknown field":   {`{"model":"m","messages":[` + hi + `],"top_k":1}`, "unknown field"},
		"no model":        {`{"messages":[` + hi + `]}`, "model parameter"},
		"no messages":     {`{"model":"m","messages":[]}`, "too short"},
		"two limits":      {`{"model":"m","messages":[` + hi + `],"max_tokens":1,"max_completion_tokens":1}`, "same time"},
		"options":         {`{"model":"m","messages":[` + hi + `],"stream_options":{"include_usage":true}}`, "only allowed"},
		"role":            {`{"model":"m","messages":[{"role":"human","content":"x"}]}`, "as role"},
		"late system":     {`{"model":"m","messages":[` + hi + `,{"role":"system","content":"x"}]}`, "must be the first"},
		"twice":           {`{"model":"m","messages":[` + hi + `,` + hi + `]}`, "alternate"},
		"empty":           {`{"model":"m","messages":[{"role":"user","content":" "}]}`, "not empty"},
		"no content":      {`{"model":"m","messages":[` + hi + `,{"role":"assistant"},` + hi + `]}`, "content or tool_calls"},
		"unanswered":      {`{"model":"m","messages":[` + hi + `,` + used + `,` + hi + `]}`, "did not have response messages: c1"},
		"unanswered last": {`{"model":"m","messages":[` + hi + `,` + used + `]}`, "did not have response messages: c1"},
		"answered twice":  {`{"model":"m","messages":[` + hi + `,` + used + `,` + done + `,` + done + `]}`, "must be a response"},
		"never asked":     {`{"model":"m","messages":[` + hi + `,` + done + `]}`, "must be a response"},
		"same id":         {`{"model":"m","messages":[` + hi + `,` + used + `,` + done + `,` + used + `,` + done + `]}`, "given twice"},
		"arguments": {`{"model":"m","messages":[` + hi + `,` + strings.Replace(used, "{}", "x", 1) + `,` + done + `]}`,
			"JSON object"},
		"last word": {`{"model":"m","messages":[` + hi + `,{"role":"assistant","content":"x"}]}`, "last message"},
		"schema": {`{"model":"m","messages":[` + hi + `],"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]}`,
			"Invalid schema"},
		"tool twice": {`{"model":"m","messages":[` + hi + `],"tools":[` + strings.Repeat(`{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},`, 2) +
			`{"type":"function"}]}`, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			status, answer, err := post(t, s, tc.body)
			got := strings.Join(s.Violations(), "\n")
			if err != nil || tc.want == "" && (got != "" || status != 200) ||
				tc.want != "" && (status != 400 || !strings.Contains(got, tc.want) || !strings.Contains(answer, `"invalid_request_error"`)) {
				t.Errorf("%d %s %v\nviolations: %s", status, answer, err, got)
			}
		})
	}
}

func TestStream(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Reasoning: "hmm", Text: "hello", ToolCalls: []ToolCall{{Name: "f", Arguments: `{"a":1}`}, {Name: "g", Arguments: "{}"}},
		Usage: Usage{In: 10, Out: 5, Cached: 4}})
	_, body, err := post(t, s, `{"model":"m","messages":[`+hi+`],"stream":true,"stream_options":{"include_usage":true}}`)
	if err != nil || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Fatalf("%v %s", err, body)
	}
	var text, reasoning, finish string
	arguments, ids := map[int]string{}, map[int]string{}
	cached := 0
	for line := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		var c struct {
			Choices []struct {
				Delta struct {
					Content   string
					Reasoning string `json:"reasoning_content"`
					ToolCalls []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish *string `json:"finish_reason"`
			}
			Usage *struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if line == "data: [DONE]" {
			break
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &c); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, choice := range c.Choices {
			text += choice.Delta.Content
			reasoning += choice.Delta.Reasoning
			for _, call := range choice.Delta.ToolCalls {
				ids[call.Index] += call.ID + call.Function.Name
				arguments[call.Index] += call.Function.Arguments
			}
			if choice.Finish != nil {
				finish = *choice.Finish
			}
		}
		if c.Usage != nil {
			cached = c.Usage.Details.Cached
		}
	}
	if text != "hello" || reasoning != "hmm" || finish != "tool_calls" || cached != 4 || len(ids) != 2 ||
		ids[0] != "call_t1f" || ids[1] != "call_t2g" || arguments[0] != `{"a":1}` || arguments[1] != "{}" {
		t.Errorf("%q %q %q %d %v %v", text, reasoning, finish, cached, ids, arguments)
	}
}

func TestUsageIsAskedFor(t *testing.T) {
	s := New(t)
	_, body, err := post(t, s, `{"model":"m","messages":[`+hi+`],"stream":true}`)
	if err != nil || strings.Contains(body, "usage") {
		t.Errorf("%v %s", err, body)
	}
}

func TestWhole(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Text: "a", ToolCalls: []ToolCall{{Name: "f"}, {Name: "g"}}})
	_, body, err := post(t, s, `{"model":"m","messages":[`+hi+`]}`)
	if err != nil || strings.Count(body, `"call_t`) != 2 || !strings.Contains(body, `"content":"a"`) {
		t.Errorf("%v %s", err, body)
	}
}
