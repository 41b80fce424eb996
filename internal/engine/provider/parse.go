package provider

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
)

// sentBody is what Parse reads of the body of a request to either API.
type sentBody struct {
	Model    string          `json:"model"`
	System   json.RawMessage `json:"system"`
	Thinking *wireThinking   `json:"thinking"`
	Tools    []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
		Function    *chatToolSpec   `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []chatCall      `json:"tool_calls"`
		ToolID    string          `json:"tool_call_id"`
	} `json:"messages"`
	Options json.RawMessage `json:"stream_options"` // of OpenAI's API alone
}

// sentBlock is a part of a message to either API.
type sentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    *wireSource     `json:"source"`
	Title     string          `json:"title"`
	Image     *chatImage      `json:"image_url"`
	File      *chatFile       `json:"file"`
}

var errBody = errors.New("not the body of a request to a model")

// Parse reads the body of a request to either API, also one that another program sent. The result has its model, system prompt, messages,
// thinking and tools. Tools that the service itself carries out, and what else only one API knows, are left out.
func Parse(body []byte) (r Request, err error) {
	var b sentBody
	if err := json.Unmarshal(body, &b); err != nil || len(b.Messages) == 0 {
		return r, errors.Join(errBody, err)
	}
	r.Model, r.Thinking = b.Model, b.Thinking.wish()
	system, err := blocksOf(b.System)
	if err != nil {
		return r, err
	}
	r.System = allText(system)
	for _, t := range b.Tools {
		switch {
		case t.Function != nil:
			r.Tools = append(r.Tools, engine.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
		case t.Schema != nil:
			r.Tools = append(r.Tools, engine.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
		}
	}
	before := "" // the role of the message before
	for _, m := range b.Messages {
		content, err := blocksOf(m.Content)
		if err != nil {
			return r, err
		}
		role := m.Role
		switch role {
		case "system", "developer":
			r.System = strings.TrimSpace(r.System + "\n\n" + allText(content))
			continue
		case "tool":
			text, failed := strings.CutPrefix(allText(content), "Error: ")
			role, content = transcript.User, []transcript.Block{{Type: transcript.ToolResult, ToolUseID: m.ToolID, Content: text, IsError: failed}}
		case transcript.User, transcript.Assistant:
		default:
			return r, fmt.Errorf("%w: role %q", errBody, role)
		}
		for _, c := range m.ToolCalls {
			content = append(content, transcript.Block{Type: transcript.ToolUse, ID: c.ID, Name: c.Function.Name, Input: object(c.Function.Arguments)})
		}
		if n := len(r.Messages); before == "tool" && role == transcript.User { // results of several tools, and what follows them
			r.Messages[n-1].Content = append(r.Messages[n-1].Content, content...)
		} else {
			r.Messages = append(r.Messages, transcript.Message{Role: role, Content: content})
		}
		before = m.Role
	}
	return r, nil
}

// wish returns how much a model was asked to think, as in requests.
func (t *wireThinking) wish() string {
	switch {
	case t == nil:
		return ""
	case t.Type == "adaptive":
		return "adaptive"
	case t.Budget > 0:
		return strconv.Itoa(t.Budget)
	}
	return "off"
}

// blocksOf reads a content: a text, a list of blocks, or nothing.
func blocksOf(content json.RawMessage) (blocks []transcript.Block, err error) {
	var text string
	if len(content) == 0 || json.Unmarshal(content, &text) == nil {
		if text != "" {
			blocks = []transcript.Block{{Type: transcript.TextBlock, Text: text}}
		}
		return blocks, nil
	}
	var sent []sentBlock
	if err := json.Unmarshal(content, &sent); err != nil {
		return nil, errors.Join(errBody, err)
	}
	for _, s := range sent {
		b, err := s.block()
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b...)
	}
	return blocks, nil
}

// block returns the block of a transcript; none for what only the service that gave it can read.
func (s sentBlock) block() ([]transcript.Block, error) {
	b := transcript.Block{Type: s.Type, Text: s.Text, Thinking: s.Thinking, Signature: s.Signature, Data: s.Data, ID: s.ID, Name: s.Name, Input: s.Input, ToolUseID: s.ToolUseID, IsError: s.IsError}
	switch s.Type {
	case transcript.TextBlock, transcript.ThinkingBlock, transcript.RedactedBlock, transcript.ToolUse:
	case transcript.ToolResult:
		inner, err := blocksOf(s.Content)
		if err != nil {
			return nil, err
		}
		b.Content = allText(inner)
		if i := slices.IndexFunc(inner, func(b transcript.Block) bool { return b.Source != nil }); i >= 0 {
			b.Source = inner[i].Source
		}
	case transcript.ImageBlock, transcript.DocumentBlock:
		if s.Source == nil || s.Source.Type != "base64" {
			return nil, nil
		}
		b = fileBlock(s.Source.MediaType, s.Title, s.Source.Data)
	case "image_url", "file":
		url, name := "", ""
		if s.Image != nil {
			url = s.Image.URL
		}
		if s.File != nil {
			url, name = s.File.Data, s.File.Name
		}
		head, data, _ := strings.Cut(url, ";base64,")
		content, err := base64.StdEncoding.DecodeString(data)
		if err != nil || len(content) == 0 {
			return nil, nil //nolint:nilerr // it names a file that is elsewhere
		}
		b = fileBlock(strings.TrimPrefix(head, "data:"), name, content)
	default:
		return nil, nil
	}
	return []transcript.Block{b}, nil
}

func fileBlock(mediaType, name string, content []byte) transcript.Block {
	return (&transcript.Source{MediaType: mediaType, Name: name, Size: len(content), Content: content}).Block()
}

// allText returns the texts of blocks in one, blank ones too.
func allText(blocks []transcript.Block) string {
	var list []string
	for _, b := range blocks {
		if b.Type == transcript.TextBlock {
			list = append(list, b.Text)
		}
	}
	return strings.Join(list, "\n\n")
}
