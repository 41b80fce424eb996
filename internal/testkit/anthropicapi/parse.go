package anthropicapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

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
		Output  struct {
			Effort string `json:"effort"`
		} `json:"output_config"`
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
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	} `json:"source"`
	Cache *struct{} `json:"cache_control"`
}

// parse parses a body. fault describes the malformed part.
func parse(header http.Header, raw []byte) (q Request, fault string) {
	q = Request{Header: header.Clone(), Raw: raw}
	if err := json.Unmarshal(raw, &q.body); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return q, fmt.Sprintf("%s: Input should be a valid %s", wrong.Field, wrong.Type)
		}
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
	q.system, q.System = system, joined(system, "text", "\n\n")
	if b.Messages == nil {
		return q, ""
	}
	for i, m := range *b.Messages {
		content, ok := blocks(m.Content)
		if !ok || m.Content == nil {
			return q, fmt.Sprintf("messages.%d.content: Input should be a valid string or a list of blocks", i)
		}
		q.Messages = append(q.Messages, Message{Role: m.Role, Content: content, effort: m.Output.Effort})
	}
	return q, ""
}

// blocks parses content: nothing, a string, or a list.
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
			ToolUseID: b.ToolUseID, IsError: b.IsError, ResultText: resultText(result), Cached: b.Cache != nil}
		if b.Type == "thinking" {
			block.Text = b.Thinking
		}
		if b.Source != nil && b.Source.Type == "base64" {
			block.MediaType, block.File = b.Source.MediaType, b.Source.Data
		}
		if b.Type == "tool_result" {
			block.Files = slices.DeleteFunc(result, func(part Block) bool { return part.Type == "text" })
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
