package channel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Session is the content of a file.
type Session struct {
	SessionID    string    `json:"session_id"`
	Channel      string    `json:"channel"`
	ChatID       string    `json:"chat_id"`
	CreatedAt    time.Time `json:"created_at"`
	LastAccessed time.Time `json:"last_accessed"`
	Messages     []Message `json:"messages"`
}

// Message is one message of a session. Results follow the answer that has the calls, one for each call and in the order of the calls:
// the n-th belongs to the n-th call.
type Message struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Timestamp time.Time  `json:"timestamp"`
	ToolCalls []ToolCall `json:"tool_calls"` // of an answer; null if it has none
}

// Roles of messages.
const (
	User       = "user"
	Assistant  = "assistant"
	ToolResult = "tool_result"
)

// ToolCall is one use of a tool.
type ToolCall struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input"`            // a JSON object
	Failed bool            `json:"failed,omitempty"` // the result is an error
}

// UnmarshalJSON also reads calls in the form of OpenAI's API, whose arguments are an object in a string, and calls with arguments beside
// the name.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	type own ToolCall
	var call struct {
		own
		Arguments json.RawMessage `json:"arguments"`
		Function  *struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(data, &call); err != nil {
		return err
	}
	*c = ToolCall(call.own)
	if f := call.Function; f != nil {
		c.Name = cmp.Or(c.Name, f.Name)
		if call.Arguments == nil {
			call.Arguments = f.Arguments
		}
	}
	if c.Input == nil && (call.Arguments != nil || call.Function != nil) {
		c.Input = object(call.Arguments)
	}
	return nil
}

// object returns the arguments of a call as an object.
func object(arguments json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		arguments = json.RawMessage(text)
	}
	var fields map[string]json.RawMessage
	switch {
	case len(bytes.TrimSpace(arguments)) == 0 || string(arguments) == "null":
		return json.RawMessage("{}")
	case json.Unmarshal(arguments, &fields) == nil:
		return arguments
	}
	kept, _ := json.Marshal(map[string]string{"arguments": string(arguments)}) // texts: it cannot fail
	return kept
}

// maxMessages is the greatest number of messages in a session, unless one turn alone has more.
const maxMessages = 50

// Unanswered is the result of a call whose result is unknown.
const Unanswered = "interrupted: it is not known whether this took effect"

// decode parses the file of a session.
func decode(n Name, data []byte) (s Session, err error) {
	s.Messages = make([]Message, 0, maxMessages) // growing in steps would allocate three times as much in Load
	if err := json.Unmarshal(data, &s); err != nil {
		return s, store.Misfit(err)
	}
	switch {
	case s.SessionID != n.ID() || s.Channel != n.channel || s.ChatID != n.chat:
		return s, fmt.Errorf("it holds the session %q", s.SessionID)
	case s.CreatedAt.IsZero() || s.LastAccessed.IsZero():
		return s, errors.New("created_at or last_accessed is missing")
	}
	s.CreatedAt, s.LastAccessed = s.CreatedAt.UTC(), s.LastAccessed.UTC()
	for i, m := range s.Messages {
		s.Messages[i].Timestamp = m.Timestamp.UTC()
		if m.Role != User && m.Role != Assistant && m.Role != ToolResult {
			return s, fmt.Errorf("message %d: unknown role %q", i+1, m.Role)
		}
	}
	return s, nil
}

// last returns the newest messages, at most n of them. A call and its results stay together.
func last(messages []Message, n int) []Message {
	for len(messages) > max(n, 0) {
		messages = messages[group(messages):]
	}
	return messages
}

// group returns how many messages the oldest group has: an answer with all its results, or one message.
func group(messages []Message) int {
	n := 1
	for messages[0].Role != User && n < len(messages) && messages[n].Role == ToolResult {
		n++
	}
	return n
}
