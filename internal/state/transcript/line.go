package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// errNoMessage is the error of a line that is not a message.
var errNoMessage = errors.New("not a message")

// entryLine is an entry on disk.
type entryLine struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp,omitempty"`
	entryFields
}

type entryFields Entry // without its methods

// MarshalJSON writes the line of a transcript.
func (e Entry) MarshalJSON() ([]byte, error) {
	l := entryLine{Type: "message", entryFields: entryFields(e)}
	if !e.At.IsZero() {
		l.Timestamp = e.At.Format(time.RFC3339Nano)
	}
	return marshal(l)
}

// UnmarshalJSON reads the line of a transcript.
func (e *Entry) UnmarshalJSON(data []byte) error {
	var l entryLine
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	if l.Type != "message" || l.Message.Role != User && l.Message.Role != Assistant {
		return errNoMessage
	}
	*e = Entry(l.entryFields)
	e.At = stamp(l.Timestamp)
	return nil
}

// MarshalJSON writes the form of the Messages API. A single text is written as a plain string, and a tool's input that is not valid JSON
// as a string.
func (c Blocks) MarshalJSON() ([]byte, error) {
	if len(c) == 1 && c[0].Type == TextBlock && isPlain(c[0]) {
		return marshal(c[0].Text)
	}
	content := make([]Block, len(c)) // never null
	for i, b := range c {
		if b.Input != nil && !json.Valid(b.Input) {
			b.Input, _ = json.Marshal(string(b.Input)) // strings can always be encoded
		}
		b.Input = bytes.ToValidUTF8(b.Input, []byte("\ufffd"))
		content[i] = b
	}
	return marshal(content)
}

// UnmarshalJSON reads the form of the Messages API.
func (c *Blocks) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		text := Block{Type: TextBlock}
		err := json.Unmarshal(data, &text.Text)
		*c = Blocks{text}
		return err
	}
	return json.Unmarshal(data, (*[]Block)(c))
}

// isPlain reports whether a block has only its type and a text.
func isPlain(b Block) bool {
	return b.Thinking == "" && b.Signature == "" && b.Data == "" && b.ID == "" && b.Name == "" && b.Input == nil &&
		b.ToolUseID == "" && b.Content == "" && !b.IsError && b.Source == nil
}

// marshal encodes JSON without escaping <, > and &, so that files can be searched for literal text.
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

// decode parses one line. ok reports a message. bad reports a line that is not a JSON object, or a message that cannot be parsed. For a
// line of another type, such as the header, both are false.
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

// isMessage guesses quickly whether decode would return a message. The guess is wrong only for a damaged line.
func isMessage(line []byte) bool {
	if bytes.HasPrefix(line, []byte(opening)) && bytes.HasSuffix(line, []byte("}")) {
		return true
	}
	_, ok, _ := decode(line)
	return ok
}

// opening is the beginning of the message lines that ollim writes.
const opening = `{"type":"message"`

// visible returns the text of a block that a person can read: text, the input of a tool, its result.
func (b Block) visible() string {
	switch b.Type {
	case TextBlock:
		return b.Text
	case ToolUse:
		return b.Name + " " + strings.TrimSpace(string(b.Input))
	case ToolResult:
		if b.Source != nil {
			return b.Content + "\n" + b.Source.Label()
		}
		return b.Content
	case ImageBlock, DocumentBlock:
		if b.Source != nil {
			return b.Source.Label()
		}
	}
	return ""
}
