package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Entry is one message line of a transcript.
type Entry struct {
	Message Message   `json:"message"`
	At      time.Time `json:"-"`
	Tokens  int       `json:"tokens,omitempty"` // the length of the conversation including this answer, as counted by the service; 0: unknown
	Prefix  string    `json:"prefix,omitempty"` // identifies the model, system prompt and tools that the thoughts of this answer belong to; "plain" if the service refused the thoughts before
	Full    int       `json:"full,omitempty"`   // the length of the conversation, in tokens, at which a compaction failed just before this message; 0: none failed
	Run     string    `json:"run,omitempty"`    // the id of the run that sent this to the model; "" for an answer, a tool's result and a summary
	More    bool      `json:"more,omitempty"`   // the answer is not finished: it broke off, or continues in the next message
}

// Message is one message of a conversation, in the form of the Anthropic Messages API for every service.
type Message struct {
	Role    string `json:"role"` // User or Assistant
	Content Blocks `json:"content"`
}

// Blocks is the content of a message.
type Blocks []Block

// Roles of messages.
const (
	User      = "user"
	Assistant = "assistant"
)

// Block is one part of a message.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`      // of text
	Thinking  string          `json:"thinking,omitempty"`  // of thinking
	Signature string          `json:"signature,omitempty"` // of thinking; without it the service does not take it back
	Data      string          `json:"data,omitempty"`      // of redacted_thinking
	ID        string          `json:"id,omitempty"`        // of tool_use
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`       // a JSON object
	ToolUseID string          `json:"tool_use_id,omitempty"` // of tool_result
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *Source         `json:"source,omitempty"` // of image and document, and of a tool_result that shows one
}

// Source is a file that the model sees as it is. A transcript names it by the hash of its content; the content itself is kept
// once, for all transcripts. Sources are shared between copies of a message.
type Source struct {
	MediaType string `json:"media_type"`
	Name      string `json:"name,omitempty"`
	Size      int    `json:"size"`             // bytes
	SHA256    string `json:"sha256,omitempty"` // in hexadecimal; "" if the content is not kept
	media.Facts

	Content []byte `json:"-"` // nil if it is not loaded
}

// Types of blocks.
const (
	TextBlock     = "text"
	ThinkingBlock = "thinking"
	RedactedBlock = "redacted_thinking"
	ToolUse       = "tool_use"
	ToolResult    = "tool_result"
	ImageBlock    = "image"
	DocumentBlock = "document"
)

// interruptedText answers a tool use whose result is unknown.
const interruptedText = "interrupted: it is not known whether this took effect"

// Said returns a message of one text.
func Said(role, text string) Message {
	return Message{Role: role, Content: []Block{{Type: TextBlock, Text: text}}}
}

// Block returns the block of a file that the model sees.
func (s *Source) Block() Block {
	if media.IsImage(s.MediaType) {
		return Block{Type: ImageBlock, Source: s}
	}
	return Block{Type: DocumentBlock, Source: s}
}

// Label describes a file in place of its content.
func (s *Source) Label() string {
	kind := "document"
	if media.IsImage(s.MediaType) {
		kind = "image"
	}
	return plaintext.Line(fmt.Sprintf("[%s, %s, %s]", strings.TrimSpace(kind+" "+s.Name), s.MediaType, media.Size(s.Size)))
}

// Tokens estimates how many tokens the file has for a model; 0 without a file.
func (s *Source) Tokens() int {
	if s == nil {
		return 0
	}
	return s.Facts.Tokens(s.MediaType)
}

// Relabelled returns the message with labels in place of the files for which replace gives one; "" keeps a file.
func (m Message) Relabelled(replace func(*Source) string) Message {
	cloned := false
	for i, b := range m.Content {
		if b.Source == nil {
			continue
		}
		label := replace(b.Source)
		if label == "" {
			continue
		}
		if !cloned {
			m.Content, cloned = slices.Clone(m.Content), true
		}
		switch b.Type {
		case ToolResult:
			b.Content, b.Source = strings.TrimSpace(b.Content+"\n"+label), nil
		default:
			b = Block{Type: TextBlock, Text: label}
		}
		m.Content[i] = b
	}
	return m
}

// Unthought returns the message without its thoughts.
func (m Message) Unthought() Message {
	m.Content = slices.DeleteFunc(slices.Clone(m.Content), func(b Block) bool { return b.Type == ThinkingBlock || b.Type == RedactedBlock })
	return m
}

// Text returns the texts of the message, joined by newlines.
func (m Message) Text() string {
	var b bytes.Buffer
	for _, c := range m.Content {
		if c.Type == TextBlock && c.Text != "" {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(c.Text)
		}
	}
	return b.String()
}
