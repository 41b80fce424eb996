package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// messageLine is a message on disk.
type messageLine struct {
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp,omitempty"`
	Message   wireMessage `json:"message"`
	Tokens    int         `json:"tokens,omitempty"`
	Prefix    string      `json:"prefix,omitempty"`
	Full      int         `json:"full,omitempty"`
	Run       string      `json:"run,omitempty"`
	More      bool        `json:"more,omitempty"`
}

type wireMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a string, or blocks
}

// errNoMessage is the error of a line that is not a message.
var errNoMessage = errors.New("not a message")

// MarshalJSON writes the form of the Messages API; a single text is a plain string.
func (m Message) MarshalJSON() ([]byte, error) { return marshal(wire(m)) }

// UnmarshalJSON reads the form of the Messages API.
func (m *Message) UnmarshalJSON(data []byte) error {
	var l struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	content, err := blocks(l.Content)
	*m = Message{Role: l.Role, Content: content}
	return err
}

// MarshalJSON writes the line of a transcript.
func (e Entry) MarshalJSON() ([]byte, error) {
	l := messageLine{Type: "message", Message: wire(e.Message), Tokens: e.Tokens, Prefix: e.Prefix, Full: e.Full, Run: e.Run, More: e.More}
	if !e.At.IsZero() {
		l.Timestamp = e.At.Format(time.RFC3339Nano)
	}
	return marshal(l)
}

// UnmarshalJSON reads the line of a transcript.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var l struct {
		Type      string `json:"type"`
		Timestamp string `json:"timestamp"`
		Message   struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		Tokens int    `json:"tokens"`
		Prefix string `json:"prefix"`
		Full   int    `json:"full"`
		Run    string `json:"run"`
		More   bool   `json:"more"`
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	if l.Type != "message" || l.Message.Role != User && l.Message.Role != Assistant {
		return errNoMessage
	}
	content, err := blocks(l.Message.Content)
	*e = Entry{Message: Message{l.Message.Role, content}, At: stamp(l.Timestamp), Tokens: l.Tokens, Prefix: l.Prefix, Full: l.Full, Run: l.Run, More: l.More}
	return err
}

func blocks(content json.RawMessage) (b []Block, err error) {
	if len(content) > 0 && content[0] == '"' {
		text := Block{Type: TextBlock}
		err = json.Unmarshal(content, &text.Text)
		return []Block{text}, err
	}
	if len(content) > 0 {
		err = json.Unmarshal(content, &b)
	}
	return b, err
}

// wire returns m for encoding. A tool's input that is not JSON becomes a string.
func wire(m Message) wireMessage {
	w := wireMessage{Role: m.Role}
	if c := m.Content; len(c) == 1 && c[0].Type == TextBlock && isPlain(c[0]) {
		w.Content = c[0].Text
		return w
	}
	content := make([]Block, len(m.Content)) // never null
	for i, b := range m.Content {
		if b.Input != nil && !json.Valid(b.Input) {
			b.Input, _ = json.Marshal(string(b.Input)) // no error is possible
		}
		b.Input = bytes.ToValidUTF8(b.Input, []byte("\ufffd"))
		content[i] = b
	}
	w.Content = content
	return w
}

// isPlain reports whether a block has only its type and a text.
func isPlain(b Block) bool {
	return b.Thinking == "" && b.Signature == "" && b.Data == "" && b.ID == "" && b.Name == "" && b.Input == nil &&
		b.ToolUseID == "" && b.Content == "" && !b.IsError
}

// marshal leaves <, > and & unescaped, so that the files can be searched for literal text.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// encode returns entries as lines.
func encode(entries []Entry) ([]byte, error) {
	var out bytes.Buffer
	for _, e := range entries {
		line, err := e.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// decode reads one line. bad reports a line that is not a JSON object, or a message that cannot be read. A line of
// another type, such as the header, is neither a message nor bad.
func decode(line []byte) (e Entry, ok, bad bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return Entry{}, false, false
	}
	err := e.UnmarshalJSON(line)
	if err == nil {
		return e, true, false
	}
	var other struct {
		Type string `json:"type"`
	}
	bad = json.Unmarshal(line, &other) != nil || other.Type == "" || other.Type == "message"
	return Entry{}, false, bad
}

// isMessage guesses cheaply whether decode makes a message of a line; the guess is wrong only if a line is damaged
// inside.
func isMessage(line []byte) bool {
	if bytes.HasPrefix(line, []byte(opening)) && bytes.HasSuffix(line, []byte("}")) {
		return true
	}
	_, ok, _ := decode(line)
	return ok
}

// opening is the beginning of the message lines that ollim writes.
const opening = `{"type":"message"`

// visible returns the readable content of a block: texts, the inputs of tools and their results.
func (b Block) visible() string {
	switch b.Type {
	case TextBlock:
		return b.Text
	case ToolUse:
		return b.Name + " " + strings.TrimSpace(string(b.Input))
	case ToolResult:
		return b.Content
	}
	return ""
}
