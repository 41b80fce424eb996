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
	// id of the run that sent this message to the model; "" for an answer, a tool's result and a summary
	Run  string `json:"run,omitempty"`
	More bool   `json:"more,omitempty"` // the answer is not finished: it broke off, or continues in the next message
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
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`     // set in a text block
	Thinking string `json:"thinking,omitempty"` // set in a thinking block
	// set in a thinking block; without it the service does not accept the block again
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"` // set in a redacted_thinking block
	ID        string          `json:"id,omitempty"`   // set in a tool_use block
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`       // a JSON object
	ToolUseID string          `json:"tool_use_id,omitempty"` // set in a tool_result block
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *Source         `json:"source,omitempty"` // set in image and document blocks, and in a tool_result that shows a file
}

// Source is a file that the model sees unchanged. A transcript names it by the hash of its content. The content is stored once for all
// transcripts. Copies of a message share its sources.
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

// interruptedText is the result of a tool use whose actual result is unknown.
const interruptedText = "interrupted: it is not known whether this took effect"

// Said returns a message of one text.
func Said(role, text string) Message {
	return Message{Role: role, Content: []Block{{Type: TextBlock, Text: text}}}
}

// Block returns the block for a file that the model sees.
func (s *Source) Block() Block {
	if media.IsImage(s.MediaType) {
		return Block{Type: ImageBlock, Source: s}
	}
	return Block{Type: DocumentBlock, Source: s}
}

// Label returns a description that stands in place of the file's content.
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

// Relabelled returns the message with the labels of replace in place of files; for the label "" a file is kept.
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

// Unthought returns the message without thoughts.
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
