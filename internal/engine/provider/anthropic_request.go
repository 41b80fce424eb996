package provider

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/transcript"
)

// wireRequest is the body of a request to the Messages API.
type wireRequest struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	Stream    bool          `json:"stream"`
	Thinking  *wireThinking `json:"thinking,omitempty"`
	Tools     []wireTool    `json:"tools,omitempty"`
	System    []wireBlock   `json:"system,omitempty"`
	Messages  []wireMessage `json:"messages"`
}

type wireMessage struct {
	Role    string      `json:"role"`
	Content []wireBlock `json:"content"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"` // must be there even if it is empty
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // a text, or blocks
	IsError   bool            `json:"is_error,omitempty"`
	Source    *wireSource     `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"` // of a document
	Cache     *wireCache      `json:"cache_control,omitempty"`
}

// wireSource is the content of an image or a document.
type wireSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // JSON has it in base64
}

type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *wireCache      `json:"cache_control,omitempty"`
}

type wireCache struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

const defaultMaxTokens = 8192 // of an answer: the service wants to be told a number, and every model may say so much

func anthropicRequest(r Request) (wireRequest, error) {
	thinking, maxTokens, err := thinkingOf(r.Model, r.Thinking, cmp.Or(r.MaxTokens, defaultMaxTokens), r.Most)
	if err != nil {
		return wireRequest{}, err
	}
	w := wireRequest{Model: r.Model, MaxTokens: maxTokens, Stream: true, Thinking: thinking}
	for _, t := range r.Tools {
		w.Tools = append(w.Tools, wireTool{Name: t.Name, Description: t.Description, Schema: schema(t)})
	}
	if b := (transcript.Block{Type: transcript.TextBlock, Text: r.System}); said(b) {
		w.System = []wireBlock{{Type: b.Type, Text: b.Text}}
	}
	w.Messages = make([]wireMessage, 0, len(r.Messages))
	for _, m := range r.Messages {
		content := make([]wireBlock, 0, len(m.Content))
		for _, b := range m.Content {
			if block, ok := wire(b); ok {
				content = append(content, block)
			}
		}
		if len(content) > 0 {
			w.Messages = append(w.Messages, wireMessage{m.Role, content})
		}
	}
	w.mark(r.Cache)
	return w, nil
}

// wire is a block as the service takes it, unless it takes none such: empty texts, and thoughts that it has not signed.
func wire(b transcript.Block) (wireBlock, bool) {
	switch b.Type {
	case transcript.TextBlock:
		return wireBlock{Type: b.Type, Text: b.Text}, said(b)
	case transcript.ThinkingBlock:
		return wireBlock{Type: b.Type, Thinking: &b.Thinking, Signature: b.Signature}, b.Signature != ""
	case transcript.RedactedBlock:
		return wireBlock{Type: b.Type, Data: b.Data}, b.Data != ""
	case transcript.ToolUse:
		return wireBlock{Type: b.Type, ID: plaintext.Word(b.ID), Name: b.Name, Input: object(string(b.Input))}, true
	case transcript.ToolResult:
		if b.IsError && b.Content == "" {
			b.Content = "failed" // an error must say something
		}
		return wireBlock{Type: b.Type, ToolUseID: plaintext.Word(b.ToolUseID), Content: wireResult(b), IsError: b.IsError}, true
	case transcript.ImageBlock, transcript.DocumentBlock:
		if b.Source != nil {
			return wireFile(b.Source), true
		}
	}
	return wireBlock{}, false
}

// wireResult is the content of a tool's result: its text, and the file that it shows; nil for an empty text.
func wireResult(b transcript.Block) any {
	text := transcript.Block{Type: transcript.TextBlock, Text: b.Content}
	switch {
	case b.Source != nil && said(text):
		return []wireBlock{{Type: text.Type, Text: text.Text}, wireFile(b.Source)}
	case b.Source != nil:
		return []wireBlock{wireFile(b.Source)}
	case b.Content == "":
		return nil
	}
	return b.Content
}

// wireFile is a file that the model sees; a label stands for one whose content is not loaded.
func wireFile(s *transcript.Source) wireBlock {
	if s.Content == nil {
		return wireBlock{Type: transcript.TextBlock, Text: s.Label()}
	}
	source := &wireSource{"base64", s.MediaType, s.Content}
	if media.IsImage(s.MediaType) {
		return wireBlock{Type: transcript.ImageBlock, Source: source}
	}
	return wireBlock{Type: transcript.DocumentBlock, Source: source, Title: plaintext.Short(plaintext.Line(s.Name), maxTitle)}
}

const maxTitle = 255 // characters of a document's title

// mark sets the breakpoints of the prompt cache, four at most: behind the tools, behind the system prompt, and behind the
// last two messages of the user. The older of these is what the request before has written to the cache.
func (w *wireRequest) mark(life engine.Cache) {
	here := &wireCache{Type: "ephemeral"}
	switch life {
	case engine.CacheNone:
		return
	case engine.CacheHour:
		here.TTL = "1h"
	}
	if n := len(w.Tools); n > 0 {
		w.Tools[n-1].Cache = here
	}
	if n := len(w.System); n > 0 {
		w.System[n-1].Cache = here
	}
	left := 2
	for _, m := range slices.Backward(w.Messages) {
		if m.Role != transcript.User || left == 0 {
			continue
		}
		m.Content[len(m.Content)-1].Cache = here
		left--
	}
}

func schema(t engine.Tool) json.RawMessage {
	if !isObject(t.Schema) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Schema
}
