package anthropicapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is one request to POST /v1/messages. A body that is not a JSON object leaves all but ID, Header, Raw and At
// empty.
type Request struct {
	ID        string // of the answer's header request-id
	Model     string
	System    string // the texts of its blocks, joined by blank lines
	Messages  []Message
	Tools     []Tool
	Stream    bool
	MaxTokens int
	Thinking  json.RawMessage
	Header    http.Header
	Raw       []byte
	At        time.Time // when its body had arrived

	body   body
	system []Block
}

// Message is one message of the conversation, as sent: the API itself merges adjacent ones of one role.
type Message struct {
	Role    string // user, assistant; system in the middle of a conversation, as claude sends it
	Content []Block

	effort string // of a system message: how much the model thinks from here on; "" leaves it
}

// Block is one part of a message. Content that is a string is one block of text.
type Block struct {
	Type       string
	Text       string // of text and thinking
	Signature  string // of thinking
	ID         string // of tool_use
	Name       string
	Input      json.RawMessage
	ToolUseID  string // of tool_result
	ResultText string // its text, the parts joined by newlines; other parts as [type]
	IsError    bool
	MediaType  string  // of image and document
	File       []byte  // their content
	Files      []Block // of tool_result: the images and documents in it
	Cached     bool    // a cache breakpoint
}

// Tool is a tool that the request offers to the model.
type Tool struct {
	Name         string          `json:"name"`
	Type         string          `json:"type"` // "" and custom: the client runs it
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl json.RawMessage `json:"cache_control"`
	MaxUses      int             `json:"max_uses"` // of the service's own tools
	Allowed      []string        `json:"allowed_domains"`
	Blocked      []string        `json:"blocked_domains"`
}

// news returns the user's messages since the last one of the model.
func (q Request) news() (content []Block) {
	for _, m := range slices.Backward(q.Messages) {
		if m.Role == "assistant" {
			break
		}
		if m.Role == "user" {
			content = append(slices.Clone(m.Content), content...)
		}
	}
	return content
}

// LastUserText returns the user's text since the last message of the model, joined by newlines: "" if only tools
// answered. Claude puts its own reminders there too.
func (q Request) LastUserText() string { return joined(q.news(), "text", "\n") }

// ToolResults returns the results of tools since the last message of the model.
func (q Request) ToolResults() []Block {
	return slices.DeleteFunc(q.news(), func(b Block) bool { return b.Type != "tool_result" })
}

// Has reports whether text occurs anywhere in the conversation: in texts, thoughts, inputs of tools (as JSON) or their
// results. The system prompt is excluded.
func (q Request) Has(text string) bool {
	for _, m := range q.Messages {
		for _, b := range m.Content {
			if strings.Contains(b.Text, text) || strings.Contains(b.ResultText, text) || bytes.Contains(b.Input, []byte(text)) {
				return true
			}
		}
	}
	return false
}

// ToolNames returns the names of the offered tools.
func (q Request) ToolNames() (names []string) {
	for _, t := range q.Tools {
		names = append(names, t.Name)
	}
	return names
}

// IsSearch reports whether the request offers the service's own search.
func (q Request) IsSearch() bool {
	return slices.ContainsFunc(q.Tools, func(t Tool) bool { return strings.HasPrefix(t.Type, "web_search_") })
}

// Key returns the API key or token of the request, or "".
func (q Request) Key() string {
	if key := q.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	token, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer")
	return strings.TrimSpace(token) // a client whose helper for keys fails sends only this word
}

// uses reports whether the conversation contains a tool use with this id.
func (q Request) uses(id string) bool {
	return slices.ContainsFunc(q.Messages, func(m Message) bool {
		return slices.ContainsFunc(m.Content, func(b Block) bool { return b.Type == "tool_use" && b.ID == id })
	})
}

const bytesPerToken = 4 // a common rule of thumb instead of a tokenizer

func (q Request) tokens() int { return max(1, len(q.Raw)/bytesPerToken) }

// Session returns the session id that claude sends with the request, or "".
func (q Request) Session() string { return q.Header.Get("X-Claude-Code-Session-Id") }
