package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

func TestAnthropicRequest(t *testing.T) {
	s := anthropicapi.New(t)
	s.Reply(anthropicapi.Reply{Thinking: "hm", Text: "I look", ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]any{"p": "<a&b>"}}}})
	p := NewAnthropic(Options{BaseURL: s.URL(), Key: "k"})
	r := ask("one")
	r.System, r.Tools = "be good", []engine.Tool{{Name: "Read", Description: "reads"}, {Name: "Edit", Schema: json.RawMessage(`{"type":"object","x":1}`)}}
	a, err := p.Ask(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	use := a.Message.Content[2]
	r.Messages = append(r.Messages, a.Message,
		transcript.Message{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: use.ID}, {Type: transcript.TextBlock, Text: "note"}, {Type: transcript.TextBlock, Text: " \n"}}},
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.RedactedBlock, Data: "xyz"}, {Type: transcript.ThinkingBlock, Thinking: "of another service"},
			{Type: transcript.ToolUse, ID: "functions.Read:0", Name: "Read", Input: json.RawMessage(`broken`)}}},
		transcript.Message{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: "functions.Read:0", IsError: true}}},
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.ThinkingBlock, Thinking: "only unsigned"}}},
		transcript.Said(transcript.User, "last"))
	if _, err := p.Ask(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	q := s.Requests()[1]
	if q.Breakpoints() != 4 || q.System != "be good" || len(q.Messages) != 6 || string(q.Tools[1].InputSchema) != `{"type":"object","x":1}` ||
		len(q.Tools[0].CacheControl) > 0 || len(q.Tools[1].CacheControl) == 0 {
		t.Errorf("%s", q.Raw)
	}
	var cached []string
	for i, m := range q.Messages {
		for j, b := range m.Content {
			if b.Cached {
				cached = append(cached, fmt.Sprint(i, ".", j))
			}
		}
	}
	if fmt.Sprint(cached) != "[4.0 5.0]" {
		t.Errorf("breakpoints at %v", cached)
	}
	if !strings.Contains(string(q.Raw), `"data":"xyz"`) || !strings.Contains(string(q.Raw), `{"not_an_object":"broken"}`) || strings.Contains(string(q.Raw), "unsigned") ||
		q.Messages[1].Content[0].Signature != a.Message.Content[0].Signature || q.Messages[4].Content[0].ResultText != "failed" {
		t.Errorf("%s", q.Raw)
	}
}

func TestOpenAIRequest(t *testing.T) {
	s := openaiapi.New(t)
	r := ask("one")
	r.System, r.Tools = "be good", []engine.Tool{{Name: "Read", Description: "reads"}}
	r.Messages = append(r.Messages,
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.ThinkingBlock, Thinking: "secret", Signature: "s"}, {Type: transcript.TextBlock, Text: "a"}, {Type: transcript.TextBlock, Text: "b"},
			{Type: transcript.ToolUse, ID: "t1", Name: "Read", Input: json.RawMessage(`{"p":1}`)}, {Type: transcript.ToolUse, ID: "t2", Name: "Read"}}},
		transcript.Message{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: "t2", Content: "two"}, {Type: transcript.ToolResult, ToolUseID: "t1", Content: "no", IsError: true},
			{Type: transcript.TextBlock, Text: "note"}}},
		transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.ThinkingBlock, Thinking: "alone"}}},
		transcript.Said(transcript.User, "last"))
	if _, err := NewOpenAI(Options{BaseURL: s.URL() + "/"}).Ask(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	q := s.Requests()[0]
	var got []string
	for _, m := range q.Messages {
		got = append(got, fmt.Sprint(m.Role, "|", m.Text(), "|", len(m.ToolCalls), "|", m.ToolCallID))
	}
	want := []string{"system|be good|0|", "user|one|0|", "assistant|a\n\nb|2|", "tool|two|0|t2", "tool|Error: no|0|t1", "user|note\n\nlast|0|"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || q.MaxTokens != 1000 || !q.IncludeUsage || q.ReasoningEffort != "" || q.Key() != "" {
		t.Errorf("%s\n%s", strings.Join(got, "\n"), q.Raw)
	}
}

func TestOpenAIHosts(t *testing.T) {
	r := ask("hi")
	r.Messages = append(r.Messages, transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{
		{Type: transcript.ThinkingBlock, Thinking: "hm"}, {Type: transcript.ToolUse, ID: "a", Name: "f"}}})
	for _, tc := range []struct {
		base, model string
		old         bool // max_tokens
		thoughts    string
	}{
		{"https://api.openai.com/v1", "gpt-4o", false, ""}, {"http://localhost:11434/v1", "qwen3", true, ""},
		{"https://proxy.example/v1", "gpt-5", false, ""}, {"https://api.deepseek.com", "deepseek-v4-pro", true, "hm"},
		{"https://api.moonshot.ai/v1", "kimi", true, "hm"}, {"https://notdeepseek.com", "x", true, ""},
	} {
		r.Model = tc.model
		q := openaiRequest(r, tc.base)
		raw, err := json.Marshal(q)
		if old := strings.Contains(string(raw), `"max_tokens":1000`); err != nil || old != tc.old || (q.MaxCompletionTokens == 1000) == old ||
			q.Messages[1].ReasoningContent != tc.thoughts {
			t.Errorf("%s: %s", tc.base, raw)
		}
	}
}

// A redirect is not followed: the key would go with it.
func TestRedirect(t *testing.T) {
	for name, open := range map[string]func(Options) Provider{"anthropic": NewAnthropic, "openai": NewOpenAI} {
		asked := 0
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked++
			return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"https://elsewhere.example/x"}}, Body: http.NoBody, Request: r}, nil
		})}
		_, err := open(Options{Client: client, Key: "k"}).Ask(t.Context(), ask("hi"), nil)
		if asked != 1 || err == nil || !strings.Contains(err.Error(), "elsewhere.example") || !strings.Contains(err.Error(), "api."+name+".com") {
			t.Errorf("%s: %v after %d requests", name, err, asked)
		}
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"} {
		t.Setenv(name, "of the environment")
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: of the environment")
	for name, open := range map[string]func(Options) Provider{"anthropic": NewAnthropic, "openai": NewOpenAI} {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if said := fmt.Sprint(r.Header); strings.Contains(said, "of the environment") || r.URL.Host != "api."+name+".com" {
				t.Errorf("%s %s", r.URL, said)
			}
			return nil, http.ErrHandlerTimeout
		})}
		if _, err := open(Options{Client: client}).Ask(t.Context(), ask("hi"), nil); !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	vendors(t, func(t *testing.T, v vendor) {
		p := v.open()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if a, err := p.Ask(t.Context(), ask("hi"), nil); err != nil || a.Message.Text() != "ok" {
					t.Errorf("%v %v", a, err)
				}
			})
		}
		all.Wait()
	})
}

// conversation draws one that obeys the rules that transcripts keep.
func conversation(t *rapid.T) []transcript.Message {
	text := rapid.StringMatching(`[ a-zä"\\<]{0,6}`)
	said := func(label string) transcript.Block {
		return transcript.Block{Type: transcript.TextBlock, Text: text.Draw(t, label)}
	}
	list := []transcript.Message{transcript.Said(transcript.User, "begin "+text.Draw(t, "first"))}
	for turn := range rapid.IntRange(0, 6).Draw(t, "turns") {
		a, u := transcript.Message{Role: transcript.Assistant}, transcript.Message{Role: transcript.User}
		for i := range rapid.IntRange(0, 4).Draw(t, "blocks") {
			id := fmt.Sprintf("id_%d-%d", turn, i)
			switch rapid.IntRange(0, 4).Draw(t, "type") {
			case 0:
				a.Content = append(a.Content, said("said"))
			case 1:
				a.Content = append(a.Content, transcript.Block{Type: transcript.ThinkingBlock, Thinking: text.Draw(t, "thought")})
			case 2:
				a.Content = append(a.Content, transcript.Block{Type: transcript.RedactedBlock, Data: "x"})
			default:
				input := rapid.SampledFrom([]string{`{}`, `{"a":"<&>"}`, ``, `null`, `[1]`, `{"a`}).Draw(t, "input")
				a.Content = append(a.Content, transcript.Block{Type: transcript.ToolUse, ID: id, Name: "Read", Input: json.RawMessage(input)})
				u.Content = append(u.Content, transcript.Block{Type: transcript.ToolResult, ToolUseID: id, Content: text.Draw(t, "result"), IsError: rapid.Bool().Draw(t, "error")})
			}
		}
		if len(u.Content) > 1 {
			u.Content = rapid.Permutation(u.Content).Draw(t, "order")
		}
		if len(u.Content) == 0 {
			u.Content = append(u.Content, transcript.Block{Type: transcript.TextBlock, Text: "x" + text.Draw(t, "more")})
		} else if rapid.Bool().Draw(t, "note") {
			u.Content = append(u.Content, said("note"))
		}
		list = append(list, a, u)
	}
	return list
}

func TestAnyConversationIsAccepted(t *testing.T) {
	claude, other := anthropicapi.New(t), openaiapi.New(t)
	providers := []Provider{NewAnthropic(Options{BaseURL: claude.URL(), Key: "k"}), NewOpenAI(Options{BaseURL: other.URL()})}
	rapid.Check(t, func(rt *rapid.T) {
		r := Request{Model: model, Messages: conversation(rt), System: rapid.SampledFrom([]string{"", " ", "s"}).Draw(rt, "system")}
		for _, p := range providers {
			if _, err := p.Ask(t.Context(), r, nil); err != nil {
				rt.Fatalf("%v", err)
			}
		}
	})
	if v := append(claude.Violations(), other.Violations()...); len(v) > 0 {
		t.Errorf("%v", v)
	}
}

func BenchmarkLongConversation(b *testing.B) {
	r := Request{Model: model}
	text := strings.Repeat("hello \"world\" \n", 70)
	for i := range 2500 {
		id := fmt.Sprint("toolu_", i)
		r.Messages = append(r.Messages, transcript.Said(transcript.User, text),
			transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.TextBlock, Text: text},
				{Type: transcript.ToolUse, ID: id, Name: "Read", Input: json.RawMessage(`{"a":"b"}`)}}},
			transcript.Message{Role: transcript.User, Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: id, Content: text}}},
			transcript.Said(transcript.Assistant, text))
	}
	r.Messages = append(r.Messages, transcript.Said(transcript.User, "now"))
	for name, open := range map[string]func(Options) Provider{"anthropic": NewAnthropic, "openai": NewOpenAI} {
		b.Run(name, func(b *testing.B) {
			client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, http.ErrHandlerTimeout })}
			p := open(Options{Client: client})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = p.Ask(b.Context(), r, nil) // to the first byte
			}
		})
	}
}
