package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is one request to POST /v1/messages. A body that is no JSON object leaves all but ID, Header, Raw and At empty.
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

	body body
}

// Message is one message of the conversation, as it was sent: the API itself merges neighbours of one role.
type Message struct {
	Role    string // user, assistant; system in the middle of a conversation, as claude sends it
	Content []Block
}

// Block is one part of a message. A string as content is one block of text.
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
}

// Tool is one that the request offers to the model.
type Tool struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"` // "" and custom: the client runs it
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type body struct {
	Model     *string         `json:"model"`
	MaxTokens *int            `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    json.RawMessage `json:"system"`
	Thinking  json.RawMessage `json:"thinking"`
	Tools     []Tool          `json:"tools"`
	Messages  *[]struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// parse reads a body. The fault says what of it has the wrong form.
func parse(header http.Header, raw []byte) (q Request, fault string) {
	q = Request{Header: header.Clone(), Raw: raw}
	if err := json.Unmarshal(raw, &q.body); err != nil {
		return q, fmt.Sprintf("The request body is not valid JSON: %v", err)
	}
	b := q.body
	q.Tools, q.Stream, q.Thinking = b.Tools, b.Stream, b.Thinking
	if b.Model != nil {
		q.Model = *b.Model
	}
	if b.MaxTokens != nil {
		q.MaxTokens = *b.MaxTokens
	}
	system, ok := blocks(b.System)
	if !ok || slices.ContainsFunc(system, func(s Block) bool { return s.Type != "text" }) {
		return q, "system: Input should be a valid string or a list of text blocks"
	}
	q.System = joined(system, "text", "\n\n")
	if b.Messages == nil {
		return q, ""
	}
	for i, m := range *b.Messages {
		content, ok := blocks(m.Content)
		if !ok || m.Content == nil {
			return q, fmt.Sprintf("messages.%d.content: Input should be a valid string or a list of blocks", i)
		}
		q.Messages = append(q.Messages, Message{m.Role, content})
	}
	return q, ""
}

// blocks reads content: nothing, a string, or a list.
func blocks(raw json.RawMessage) (list []Block, ok bool) {
	if len(raw) == 0 {
		return nil, true
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return []Block{{Type: "text", Text: text}}, true
	}
	var wire []wireBlock
	if json.Unmarshal(raw, &wire) != nil || raw[0] != '[' {
		return nil, false
	}
	for _, b := range wire {
		result, ok := blocks(b.Content)
		if !ok && b.Type == "tool_result" {
			return nil, false
		}
		block := Block{Type: b.Type, Text: b.Text, Signature: b.Signature, ID: b.ID, Name: b.Name, Input: b.Input,
			ToolUseID: b.ToolUseID, IsError: b.IsError, ResultText: resultText(result)}
		if b.Type == "thinking" {
			block.Text = b.Thinking
		}
		list = append(list, block)
	}
	return list, true
}

func resultText(content []Block) string {
	var parts []string
	for _, b := range content {
		if b.Type != "text" {
			b.Text = "[" + b.Type + "]"
		}
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

func joined(content []Block, kind, sep string) string {
	var parts []string
	for _, b := range content {
		if b.Type == kind {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, sep)
}

// news is what the user's side has added since the model last spoke.
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

// LastUserText is what the user has said since the model last spoke, joined by newlines: "" if only tools answered. Claude
// puts its own reminders there too.
func (q Request) LastUserText() string { return joined(q.news(), "text", "\n") }

// ToolResults are the results that tools have given since the model last spoke.
func (q Request) ToolResults() []Block {
	return slices.DeleteFunc(q.news(), func(b Block) bool { return b.Type != "tool_result" })
}

// Has says whether text stands anywhere in the conversation: in what was said, thought, given to a tool (as JSON) or
// answered by one. The system prompt does not count.
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

// ToolNames are the names of the tools on offer.
func (q Request) ToolNames() (names []string) {
	for _, t := range q.Tools {
		names = append(names, t.Name)
	}
	return names
}

// Key is the API key or token that the request carries, or "".
func (q Request) Key() string {
	if key := q.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	token, _ := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	return token
}

// IsCompaction says whether claude asks for a summary of the conversation, by /compact or on its own.
func (q Request) IsCompaction() bool {
	return strings.Contains(q.LastUserText(), "CRITICAL: Respond with TEXT ONLY")
}

// Instructions are the additional instructions of a compaction, or "".
func (q Request) Instructions() string {
	_, rest, _ := strings.Cut(q.LastUserText(), "Additional Instructions:\n")
	text, _, _ := strings.Cut(rest, "\n\nREMINDER")
	return strings.TrimSpace(text)
}

// summary answers a compaction.
func summary(q Request) Reply {
	return Reply{Text: "<analysis>\nNone, this is a test.\n</analysis>\n\n<summary>\nSummary of " +
		fmt.Sprint(len(q.Messages)) + " messages. Instructions: " + q.Instructions() + "\n</summary>"}
}

// uses says whether the conversation holds a tool use with this id.
func (q Request) uses(id string) bool {
	return slices.ContainsFunc(q.Messages, func(m Message) bool {
		return slices.ContainsFunc(m.Content, func(b Block) bool { return b.Type == "tool_use" && b.ID == id })
	})
}

const bytesPerToken = 4 // a common rule of thumb, here for want of a tokenizer

func (q Request) tokens() int { return max(1, len(q.Raw)/bytesPerToken) }
