package provider

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
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

	files []chatPart // behind Content
}

// chatPart is a part of a message that has files.
type chatPart struct {
	Type  string     `json:"type"`
	Text  string     `json:"text,omitempty"`
	Image *chatImage `json:"image_url,omitempty"`
	File  *chatFile  `json:"file,omitempty"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatFile struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// MarshalJSON writes a message with files as a list of parts, the files first.
func (m chatMessage) MarshalJSON() ([]byte, error) {
	type plain chatMessage
	if len(m.files) == 0 {
		return json.Marshal(plain(m))
	}
	parts := slices.Clone(m.files)
	if m.Content != "" {
		parts = append(parts, chatPart{Type: transcript.TextBlock, Text: m.Content})
	}
	return json.Marshal(struct {
		plain
		Content []chatPart `json:"content"`
	}{plain(m), parts})
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
	host := hostOf(baseURL)
	q := chatRequest{
		Model: r.Model, Stream: true, StreamOptions: map[string]bool{"include_usage": true},
		Messages: openaiMessages(r, host), ReasoningEffort: effort(r, host),
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, chatTool{callType, chatToolSpec{t.Name, t.Description, schema(t)}})
	}
	// Newer models want the limit of the answer under its new name. Most servers of other models know the old name only.
	newer := slices.ContainsFunc([]string{"o1", "o3", "o4", "gpt-5", "gpt-6"}, func(series string) bool { return strings.HasPrefix(r.Model, series) })
	if under(host, "api.openai.com") || newer {
		q.MaxCompletionTokens = r.MaxTokens
	} else {
		q.MaxTokens = r.MaxTokens
	}
	return q
}

// hostOf returns the host of an address, "" for none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func openaiMessages(r Request, host string) []chatMessage {
	// These refuse a conversation whose thoughts before a tool call are missing. Others refuse the field.
	thoughts := under(host, "deepseek.com") || under(host, "moonshot.ai") || under(host, "moonshot.cn")
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
		said := chatMessage{Role: transcript.User, Content: texts(m), files: files(m, host)}
		switch n := len(list); {
		case said.Content == "" && len(said.files) == 0:
		case n > 0 && list[n-1].Role == transcript.User: // the answer between was left out; some models' templates want roles to alternate
			last := &list[n-1]
			if last.Content != "" && said.Content != "" {
				last.Content += "\n\n"
			}
			last.Content += said.Content
			last.files = append(last.files, said.files...)
		default:
			list = append(list, said)
		}
	}
	return list
}

// files are the files of a user's message, those that tools returned too: the service takes none in the answer of a tool.
func files(m transcript.Message, host string) (parts []chatPart) {
	for _, b := range m.Content {
		s := b.Source
		if s == nil {
			continue
		}
		name := plaintext.Line(cmp.Or(s.Name, "file"))
		url := func() string {
			return "data:" + s.MediaType + ";base64," + base64.StdEncoding.EncodeToString(s.Content)
		}
		switch {
		case s.Content == nil:
			parts = append(parts, chatPart{Type: transcript.TextBlock, Text: s.Label()})
		case media.IsImage(s.MediaType):
			parts = append(parts, chatPart{Type: "image_url", Image: &chatImage{url()}})
		case takesDocuments(host):
			parts = append(parts, chatPart{Type: "file", File: &chatFile{name, url()}})
		default:
			parts = append(parts, chatPart{Type: transcript.TextBlock, Text: s.Label() + " (" + host + " takes no PDF files)"})
		}
	}
	return parts
}

// TakesDocuments reports whether a service that speaks OpenAI's chat completions takes PDF files.
func (o Options) TakesDocuments() bool { return o.BaseURL == "" || takesDocuments(hostOf(o.BaseURL)) }

// takesDocuments reports whether the service of a host takes PDF files. Ollama, llama.cpp, vLLM, DeepSeek, Groq and others refuse
// the field.
func takesDocuments(host string) bool {
	return under(host, "api.openai.com") || under(host, "openrouter.ai")
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
		if b.Source != nil {
			content += "\n(" + b.Source.Label() + " is in the next message)"
		}
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
