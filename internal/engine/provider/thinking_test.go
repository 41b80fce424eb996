package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

func TestThinking(t *testing.T) {
	for _, tc := range []struct {
		model, wish string
		limit       int
		want        string
		wantLimit   int
	}{
		{model, "", 1000, "", 1000},
		{model, "off", 1000, "disabled 0", 1000},
		{model, "false", 1000, "disabled 0", 1000},
		{model, "0", 1000, "disabled 0", 1000},
		{"claude-sonnet-5-5", "off", 1000, "between_tools 0", 1000},
		{"anthropic/claude-sonnet-5.5:beta", "0", 1000, "between_tools 0", 1000},
		{"claude-sonnet-5-5", "true", 1000, "adaptive 0 summarized", 1000},
		{"claude-sonnet-5-5", "9000", 1000, "adaptive 0 summarized", 1000},
		{"claude-haiku-5-5", "off", 1000, "disabled 0", 1000},
		{"claude-sonnet-5", "off", 1000, "disabled 0", 1000},
		{"claude-opus-5", "false", 1000, "disabled 0", 1000},
		{"claude-3-7-sonnet-20250219", "off", 1000, "disabled 0", 1000},
		{"claude-sonnet-4-20250514", "off", 1000, "disabled 0", 1000},
		{"claude-opus-5-5", "off", 1000, "", 1000},
		{"claude-opus-5-5", "0", 1000, "", 1000},
		{"claude-fable-5", "off", 1000, "", 1000},
		{"claude-mythos-5-1", "off", 1000, "", 1000},
		{"claude-mythos-preview", "off", 1000, "", 1000},
		{"claude-sonnet-6", "off", 1000, "", 1000},
		{"claude-haiku-5-6", "off", 1000, "", 1000},
		{"claude-3-5-haiku-20241022", "off", 1000, "", 1000},
		{"claude-next", "off", 1000, "", 1000},
		{"some-other-2", "off", 1000, "", 1000},
		{model, "adaptive", 1000, "adaptive 0 summarized", 1000},
		{model, "true", 1000, "adaptive 0 summarized", 1000},
		{model, "5000", 1000, "adaptive 0 summarized", 1000},
		{"claude-mythos-preview", "5000", 1000, "adaptive 0 summarized", 1000},
		{"claude-fable-5-1", "5000", 1000, "adaptive 0 summarized", 1000},
		{"claude-opus-4-7", "5000", 1000, "adaptive 0 summarized", 1000},
		{"claude-opus-4-7", "true", 1000, "adaptive 0 summarized", 1000},
		{"claude-opus-4-6", "5000", 9000, "enabled 5000", 13192},
		{"claude-opus-4-6", "8000", 8192, "enabled 8000", 16192},
		{"claude-opus-4-6", "5000", 20000, "enabled 5000", 20000},
		{"claude-opus-4-6", "true", 9000, "adaptive 0", 9000},
		{"claude-haiku-4-5-20251001", "5000", 5000, "enabled 5000", 10000},
		{"claude-haiku-4-5-20251001", "60000", 32000, "enabled 60000", 68192},
		{"claude-haiku-4-5-20251001", "10", 1000, "enabled 1024", 2024},
		{"claude-haiku-4-5", "adaptive", 32000, "enabled 8192", 32000},
		{"claude-haiku-4-5", "true", 1000, "enabled 1024", 2024},
		{"claude-sonnet-4-20250514", "true", 8000, "enabled 4000", 8000},
		{"anthropic/claude-sonnet-4.5", "true", 8000, "enabled 4000", 8000},
		{"claude-3-7-sonnet-20250219", "true", 8000, "enabled 4000", 8000},
		{"claude-3-5-haiku-20241022", "true", 8000, "", 8000},
		{"claude-3-5-haiku-20241022", "2000", 8000, "", 8000},
		{"some-other", "2000", 8000, "enabled 2000", 10000},
		{"some-other", "true", 8000, "adaptive 0", 8000},
	} {
		got, limit, err := thinkingOf(tc.model, tc.wish, tc.limit, 0)
		said := ""
		if got != nil {
			said = strings.TrimSpace(fmt.Sprint(got.Type, " ", got.Budget, " ", got.Display))
		}
		if err != nil || said != tc.want || limit != tc.wantLimit {
			t.Errorf("%s %q: %q %d %v", tc.model, tc.wish, said, limit, err)
		}
	}
	if _, _, err := thinkingOf(model, "hard", 1, 0); err == nil {
		t.Error("nonsense is taken")
	}
}

// TestThinkingWithinTheMost: neither the limit nor the budget passes what the model or its window allows, and the answer keeps
// its part.
func TestThinkingWithinTheMost(t *testing.T) {
	for _, tc := range []struct {
		wish                      string
		limit, most, budget, want int
	}{
		{"8000", 8192, 64000, 8000, 16192},
		{"60000", 64000, 64000, 55808, 64000},
		{"8000", 8192, 8192, 4096, 8192},
		{"adaptive", 4000, 4000, 2000, 4000},
		{"8000", 1024, 1024, 0, 1024},
		{"8000", 1500, 1500, 1024, 1500},
	} {
		got, limit, err := thinkingOf("claude-haiku-4-5", tc.wish, tc.limit, tc.most)
		budget := 0
		if got != nil {
			budget = got.Budget
		}
		if err != nil || budget != tc.budget || limit != tc.want {
			t.Errorf("%+v: budget %d, limit %d, %v", tc, budget, limit, err)
		}
	}
}

// Whatever is wished for, no model of the vendor's refuses what it is told.
func TestNoWishIsRefused(t *testing.T) {
	s := anthropicapi.New(t)
	p := NewAnthropic(Options{BaseURL: s.URL(), Key: "k"})
	for _, model := range []string{"claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-mythos-5-1",
		"claude-mythos-preview", "claude-sonnet-5", "claude-opus-4-8", "claude-opus-4-6", "claude-haiku-4-5-20251001"} {
		for _, wish := range []string{"", "off", "false", "0", "true", "adaptive", "1", "20000"} {
			r := ask("hi")
			r.Model, r.Thinking = model, wish
			if _, err := p.Ask(t.Context(), r, nil); err != nil {
				t.Errorf("%s %q: %v", model, wish, err)
			}
		}
	}
}

// A budget reaches the service as it is, and nothing is printed.
func TestThinkingIsSent(t *testing.T) {
	s := anthropicapi.New(t)
	stderr, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func(old *os.File) {
		os.Stderr = old
		if said, err := os.ReadFile(stderr.Name()); err != nil || len(said) > 0 {
			t.Errorf("on stderr: %s %v", said, err)
		}
	}(os.Stderr)
	os.Stderr = stderr
	r := ask("hi")
	r.Model, r.Thinking, r.MaxTokens = "claude-opus-4-6", "2000", 0
	if _, err := NewAnthropic(Options{BaseURL: s.URL() + "/v1/", Key: "k"}).Ask(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	if q := s.Requests()[0]; string(q.Thinking) != `{"type":"enabled","budget_tokens":2000}` || q.MaxTokens != 2000+answerTokens || !q.Stream {
		t.Errorf("%s", q.Raw)
	}
}

func TestEffort(t *testing.T) {
	const (
		vendor = "https://api.openai.com/v1"
		router = "https://openrouter.ai/api/v1"
		local  = "http://localhost:11434/v1"
	)
	for _, tc := range []struct {
		base, model, wish string
		tools             bool
		want              string
	}{
		{vendor, "gpt-5.4", "", false, ""}, {vendor, "gpt-5.4", "true", false, ""}, {vendor, "gpt-5.4", "adaptive", false, ""},
		{vendor, "gpt-5.4", "off", false, "none"}, {vendor, "gpt-5.1", "false", false, "none"}, {vendor, "gpt-5.6-luna", "0", false, "none"},
		{vendor, "gpt-6-luna", "off", false, "none"}, {"https://eu.api.openai.com/v1", "gpt-5.4-mini", "off", false, "none"},
		// They cannot do without, or are not known to.
		{vendor, "gpt-5-2025-08-07", "off", false, ""}, {vendor, "gpt-5-mini", "off", false, ""}, {vendor, "o3", "off", false, ""},
		{vendor, "gpt-4.1", "off", false, ""}, {vendor, "gpt-4o", "off", false, ""}, {vendor, "gpt-5.1-codex", "off", false, ""},
		{vendor, "gpt-5.1-chat-latest", "off", false, ""}, {vendor, "gpt-5.4-pro", "off", false, ""}, {vendor, "gpt-6-astra", "off", false, ""},
		{vendor, "gpt-6.1-sol", "off", false, ""}, {vendor, "gpt-6.2-sol", "off", false, ""}, {vendor, "mine", "off", false, ""},
		{vendor, "gpt-oss:20b", "off", false, ""}, {vendor, "o1-mini", "2000", false, ""}, {vendor, "gpt-4.1", "2000", false, ""},
		{vendor, "gpt-4.1", "2000", true, ""}, {vendor, "gpt-5-chat-latest", "2000", false, ""},
		{vendor, "o3", "1024", false, "low"}, {vendor, "o4-mini", "8000", true, "medium"}, {vendor, "gpt-5", "32000", true, "high"},
		{vendor, "gpt-6.2-sol", "32000", false, "high"}, {vendor, "gpt-5.1", "4096", true, "medium"},
		// With tools they do not think.
		{vendor, "gpt-5.4", "8000", true, ""}, {vendor, "gpt-5.4", "off", true, ""}, {vendor, "gpt-5.5", "8000", true, "none"},
		{vendor, "gpt-5.6-sol", "", true, "none"}, {local, "gpt-6-sol", "", true, "none"}, {local, "gpt-6-sol", "9000", true, "none"},
		{vendor, "gpt-6-astra", "off", true, ""},
		{router, "openai/gpt-5.6-sol", "off", true, ""}, {router, "z-ai/glm-5.3", "8000", true, "medium"}, {router, "z-ai/glm-5.3", "true", true, ""},
		{local, "gpt-5.4", "off", false, ""}, {local, "qwen3", "off", false, ""}, {local, "qwen3", "8000", true, ""},
		{"https://api.deepseek.com", "deepseek-flash", "off", true, ""}, {"https://notopenrouter.ai", "x", "8000", false, ""},
		{"https://api.openai.com.evil.example", "gpt-5.4", "off", false, ""},
	} {
		r := ask("hi")
		r.Model, r.Thinking = tc.model, tc.wish
		if tc.tools {
			r.Tools = []engine.Tool{{Name: "f"}}
		}
		if q := openaiRequest(r, tc.base); q.ReasoningEffort != tc.want {
			t.Errorf("%s %s %q: %q", tc.base, tc.model, tc.wish, q.ReasoningEffort)
		}
	}
}

// What a service thought before it used tools comes back to it, as transcripts keep it.
func TestUnsignedThoughts(t *testing.T) {
	list := transcript.Repair([]transcript.Message{transcript.Said(transcript.User, "q"),
		{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.ThinkingBlock, Thinking: "hm"}, {Type: transcript.ToolUse, ID: "a", Name: "f", Input: json.RawMessage(`{}`)}}}})
	r := Request{Model: model, Messages: list}
	if q := openaiRequest(r, "https://api.deepseek.com"); q.Messages[1].ReasoningContent != "hm" {
		t.Errorf("%+v", q.Messages[1])
	}
	w, err := anthropicRequest(r)
	if err != nil || len(w.Messages) != 3 || len(w.Messages[1].Content) != 1 || w.Messages[1].Content[0].Type != transcript.ToolUse {
		t.Errorf("%+v %v", w.Messages, err)
	}
}

func TestThinkingRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		status        int
		message, code string // code: of the error besides its message
		want          bool
	}{
		"type":          {400, `"thinking.type.disabled" is not supported for this model.`, "", true},
		"turned off":    {400, `To turn thinking off on this model, send "thinking": {"type": "between_tools"}`, "", true},
		"signature":     {400, "messages.1.content.0: Invalid `signature` in `thinking` block", "", true},
		"blocks":        {400, "Expected `thinking` or `redacted_thinking`, but found `text`.", "", true},
		"budget":        {400, "`max_tokens` must be greater than `thinking.budget_tokens`", "", true},
		"Ollama":        {400, `"llama3.3" does not support thinking`, "", true},
		"DeepSeek":      {400, "The `reasoning_content` in the thinking mode must be passed back to the API.", "", true},
		"effort":        {400, "Unrecognized request argument supplied: reasoning_effort", "", true},
		"effort, xAI":   {400, "Model grok-4 does not support parameter reasoningEffort.", "", true},
		"unprocessable": {422, "reasoning_effort: Extra inputs are not permitted", "", true},
		"field":         {400, "Unsupported value: 'none' is not supported with the 'gpt-5' model.", `"param":"reasoning_effort"`, true},
		"other field":   {400, "Unsupported value: 'none' is not supported with the 'gpt-5' model.", `"param":"tool_choice"`, false},
		"no field":      {400, "temperature is deprecated for this model", `"param":null`, false},
		"too long":      {400, "prompt is too long: 300000 tokens > 200000 maximum, thinking included", "", false},
		"overloaded":    {529, "thinking is slow today", "", false},
		"key":           {401, "no key for thinking", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, open := range []func(Options) Provider{NewAnthropic, NewOpenAI} {
				message, _ := json.Marshal(tc.message)
				body := `{"type":"error","error":{"type":"invalid_request_error","message":` + string(message)
				if tc.code != "" {
					body += "," + tc.code
				}
				_, err := open(Options{BaseURL: raw(t, tc.status, "application/json", body+"}}"), Key: "sekret-sekret"}).Ask(t.Context(), ask("hi"), nil)
				if errors.Is(err, ErrThinking) != tc.want || !strings.Contains(err.Error(), tc.message) {
					t.Errorf("%v", err)
				}
			}
		})
	}
}
