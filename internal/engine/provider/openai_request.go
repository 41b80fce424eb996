package provider

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/state/transcript"
)

// chatRequest is the body of a request for a chat completion.
type chatRequest struct {
	Model               string          `json:"model"`
	Messages            []chatMessage   `json:"messages"`
	MaxTokens           int             `json:"max_tokens,omitempty"` // deprecated by OpenAI alone
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	Stream              bool            `json:"stream"`
	Tools               []chatTool      `json:"tools,omitempty"`
	StreamOptions       map[string]bool `json:"stream_options"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          string     `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"` // DeepSeek and Moonshot, not OpenAI
	ToolCalls        []chatCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatToolSpec `json:"function"`
}

type chatToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

const callType = "function" // of tools and calls; the other type is for tools whose input is no JSON

func openaiRequest(r Request, baseURL string) chatRequest {
	host := ""
	if u, err := url.Parse(baseURL); err == nil {
		host = u.Hostname()
	}
	q := chatRequest{
		Model: r.Model, Stream: true, StreamOptions: map[string]bool{"include_usage": true},
		Messages: openaiMessages(r, wantsThoughts(host)), ReasoningEffort: effort(r, host),
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, chatTool{callType, chatToolSpec{t.Name, t.Description, schema(t)}})
	}
	if under(host, "api.openai.com") || refusesMaxTokens(r.Model) {
		q.MaxCompletionTokens = r.MaxTokens
	} else {
		q.MaxTokens = r.MaxTokens
	}
	return q
}

// refusesMaxTokens reports whether a model wants the limit of the answer under its new name. Most servers of other models know
// the old name only.
func refusesMaxTokens(model string) bool {
	newer := []string{"o1", "o3", "o4", "gpt-5", "gpt-6"}
	return slices.ContainsFunc(newer, func(series string) bool { return strings.HasPrefix(model, series) })
}

// wantsThoughts reports whether a service refuses a conversation whose thoughts before a tool call are missing. Others refuse
// the field.
func wantsThoughts(host string) bool {
	return under(host, "deepseek.com") || under(host, "moonshot.ai") || under(host, "moonshot.cn")
}

func openaiMessages(r Request, thoughts bool) []chatMessage {
	list := make([]chatMessage, 0, len(r.Messages)+1)
	if strings.TrimSpace(r.System) != "" {
		list = append(list, chatMessage{Role: "system", Content: r.System})
	}
	for _, m := range r.Messages {
		if m.Role == transcript.Assistant {
			if a, ok := assistant(m, thoughts); ok {
				list = append(list, a)
			}
			continue
		}
		list = append(list, results(m)...)
		text := texts(m)
		if n := len(list); n > 0 && text != "" && list[n-1].Role == transcript.User {
			list[n-1].Content += "\n\n" + text // the answer between was left out; some models' templates want roles to alternate
		} else if text != "" {
			list = append(list, chatMessage{Role: transcript.User, Content: text})
		}
	}
	return list
}

// assistant is what the model said, without its thoughts; ok is false if nothing else is in it.
func assistant(m transcript.Message, thoughts bool) (a chatMessage, ok bool) {
	a = chatMessage{Role: transcript.Assistant, Content: texts(m)}
	thought := ""
	for _, b := range m.Content {
		switch b.Type {
		case transcript.ThinkingBlock:
			thought += b.Thinking
		case transcript.ToolUse:
			call := chatFunction{b.Name, string(object(string(b.Input)))}
			a.ToolCalls = append(a.ToolCalls, chatCall{b.ID, callType, call})
		}
	}
	if thoughts && len(a.ToolCalls) > 0 {
		a.ReasoningContent = cmp.Or(thought, " ") // the field must be there, and omitempty leaves out an empty one
	}
	return a, a.Content != "" || len(a.ToolCalls) > 0
}

// results are the answers of tools. There is no field for a failure, and the content must be there.
func results(m transcript.Message) (list []chatMessage) {
	for _, b := range m.Content {
		if b.Type != transcript.ToolResult {
			continue
		}
		content := b.Content
		if strings.TrimSpace(content) == "" {
			content = "(no output)"
		}
		if b.IsError {
			content = "Error: " + content
		}
		list = append(list, chatMessage{Role: "tool", ToolCallID: b.ToolUseID, Content: content})
	}
	return list
}

// texts are the texts of a message in one, empty ones left out.
func texts(m transcript.Message) string {
	var list []string
	for _, b := range m.Content {
		if said(b) {
			list = append(list, b.Text)
		}
	}
	return strings.Join(list, "\n\n")
}
