package provider

import (
	"bytes"
	"cmp"
	"errors"
	"net/url"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/ollim/ollim/internal/state/transcript"
)

// openaiRequest is a request in the form of chat completions.
func openaiRequest(r Request, baseURL string) openai.ChatCompletionRequest {
	host := ""
	if u, err := url.Parse(baseURL); err == nil {
		host = u.Hostname()
	}
	q := openai.ChatCompletionRequest{
		Model: r.Model, Stream: true, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		Messages: openaiMessages(r, wantsThoughts(host)), ReasoningEffort: effort(r, host),
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: schema(t),
		}})
	}
	// OpenAI's newer models refuse the old name of the limit, and most servers of others know no other.
	old := q
	old.MaxTokens = r.MaxTokens //nolint:staticcheck // deprecated by OpenAI alone
	if under(host, "api.openai.com") || errors.Is(openai.NewReasoningValidator().Validate(old), openai.ErrReasoningModelMaxTokensDeprecated) {
		q.MaxCompletionTokens = r.MaxTokens
	} else {
		q = old
	}
	return q
}

// wantsThoughts says whether a service refuses a conversation whose thoughts before a tool call are missing. Others refuse
// the field.
func wantsThoughts(host string) bool {
	for _, domain := range []string{"deepseek.com", "moonshot.ai", "moonshot.cn"} {
		if under(host, domain) {
			return true
		}
	}
	return false
}

func openaiMessages(r Request, thoughts bool) []openai.ChatCompletionMessage {
	list := make([]openai.ChatCompletionMessage, 0, len(r.Messages)+1)
	if strings.TrimSpace(r.System) != "" {
		list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: r.System})
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
		if n := len(list); n > 0 && text != "" && list[n-1].Role == openai.ChatMessageRoleUser {
			list[n-1].Content += "\n\n" + text // the answer between was left out; some models' templates want roles to alternate
		} else if text != "" {
			list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text})
		}
	}
	return list
}

// assistant is what the model said, without its thoughts; ok is false if nothing else is in it.
func assistant(m transcript.Message, thoughts bool) (a openai.ChatCompletionMessage, ok bool) {
	a = openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: texts(m)}
	thought := ""
	for _, b := range m.Content {
		switch b.Type {
		case transcript.ThinkingBlock:
			thought += b.Thinking
		case transcript.ToolUse:
			call := openai.FunctionCall{Name: b.Name, Arguments: string(object(string(b.Input)))}
			a.ToolCalls = append(a.ToolCalls, openai.ToolCall{ID: b.ID, Type: openai.ToolTypeFunction, Function: call})
		}
	}
	if thoughts && len(a.ToolCalls) > 0 {
		a.ReasoningContent = cmp.Or(thought, " ") // the field must be there, and the library leaves out an empty one
	}
	return a, a.Content != "" || len(a.ToolCalls) > 0
}

// results are the answers of tools. There is no field for a failure, and an empty content is left out by the library.
func results(m transcript.Message) (list []openai.ChatCompletionMessage) {
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
		list = append(list, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: b.ToolUseID, Content: content})
	}
	return list
}

// texts are the texts of a message in one, empty ones left out.
func texts(m transcript.Message) string {
	var b bytes.Buffer
	for _, c := range m.Content {
		if said(c) {
			if b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(c.Text)
		}
	}
	return b.String()
}
