package trialmodel

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestService: in each protocol the model uses the tool that it is offered, says that it is done once it has a result, and does so at once
// where it is offered nothing. How real programs take it is tested with them.
func TestService(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]struct{ offered, result, use, text string }{
		"/v1/messages":  {`"tools":[{"name":"t"}]`, `"messages":[{"content":[{"type":"tool_result"}]}]`, `"partial_json":"{\"a\":1}"`, `"text":"done"`},
		"/v1/responses": {`"tools":[{"name":"t"}]`, `"input":[{"type":"function_call_output"}]`, `"arguments":"{\"a\":1}"`, `"text":"done"`},
		"/v1beta/models/m:streamGenerateContent": {
			`"tools":[{"functionDeclarations":[{"name":"t"}]}]`, `"contents":[{"parts":[{"functionResponse":{}}]}]`, `"args":{"a":1}`, `"text":"done"`,
		},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s, err := Serve(t.Context(), Use{Tool: "t", Input: `{"a":1}`})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			quoted := `"system":"{\"type\":\"tool_result\",\"name\":\"t\"}"`
			for i, c := range []struct{ body, want, not string }{
				{`{` + quoted + `}`, says.text, says.use},
				{`{"model":"m",` + says.offered + `,` + quoted + `}`, says.use, says.text},
				{`{"model":"m",` + says.offered + `,` + says.result + `}`, says.text, says.use},
			} {
				got := post(t, s.URL+path, c.body)
				if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
					t.Errorf("the answer to %s is %s", c.body, got)
				}
				if s.Offered() != (i > 0) {
					t.Errorf("after %s: offered: %t", c.body, s.Offered())
				}
			}
		})
	}
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}
