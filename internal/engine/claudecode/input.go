package claudecode

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/state/transcript"
)

// input is the content of the command's standard input: text or, if there are files, one message as a line of JSON.
//
// The command (2.1.197) passes images and documents in such a message on to the service in their order, stores them in its session, and
// sends them again when the session is resumed. It scales down images of more than 2000 pixels, and tells the model.
type input struct {
	text  string
	files []transcript.Block
}

// input returns the prompt of a request. The error wraps engine.ErrAttachment.
func (e *Engine) input(r engine.Request) (input, error) {
	model := e.Models.Resolve(e.model(r))
	files, err := r.Input.Shown(media.Anthropic(model.Window))
	return input{text(engine.Quoted(r.Session.Messages) + r.Input.Prompt), files}, err
}

// flags returns the flags that this form of input requires.
func (in input) flags() []string {
	if len(in.files) == 0 {
		return nil
	}
	return []string{"--input-format", "stream-json"}
}

// bytes returns the length of the input for an estimate in which a token has engine.Uncounted bytes.
func (in input) bytes() int {
	n := len(in.text)
	for _, b := range in.files {
		n += b.Source.Tokens() * engine.Uncounted
	}
	return n
}

// stdin returns a reader of the input.
func (in input) stdin() io.Reader {
	if len(in.files) == 0 {
		return strings.NewReader(in.text)
	}
	var content []object
	for _, b := range in.files {
		s := b.Source // JSON encodes []byte in base64
		sent := object{"type": b.Type, "source": object{"type": "base64", "media_type": s.MediaType, "data": s.Content}}
		if b.Type == transcript.DocumentBlock && s.Name != "" {
			sent["title"] = s.Name
		}
		content = append(content, sent)
	}
	content = append(content, object{"type": transcript.TextBlock, "text": in.text})
	line, _ := json.Marshal(object{ // strings and bytes can always be encoded
		"type": "user", "message": object{"role": transcript.User, "content": content},
	})
	return bytes.NewReader(append(line, '\n'))
}

// pastSource returns the file of a block in a session of the command, without its content.
func pastSource(raw json.RawMessage, title string) *transcript.Source {
	var source struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
	if json.Unmarshal(raw, &source) != nil || source.MediaType == "" {
		return nil
	}
	data := strings.TrimRight(source.Data, "=")
	return &transcript.Source{MediaType: source.MediaType, Name: title, Size: base64.RawStdEncoding.DecodedLen(len(data))}
}
