package openaiapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// request is one request. A malformed body leaves all but Header and Raw empty.
type request struct {
	Model           string
	Messages        []message
	Tools           []tool
	Stream          bool
	IncludeUsage    bool
	MaxTokens       int // max_tokens or max_completion_tokens
	ReasoningEffort string
	Header          http.Header
	Raw             []byte
	Search          *search // of a request of the Responses API, in which the rest but Model is empty

	body body
}

// message is one message of the conversation.
type message struct {
	Role       string     `json:"role"`
	Content    *content   `json:"content"` // nil if there is none
	Name       string     `json:"name"`
	Refusal    string     `json:"refusal"`
	ToolCalls  []sentCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// content is a text, or parts; Text then joins their texts.
type content struct {
	Text  string
	Parts []part
}

// part is one part of a message: a text, an image or a file, whose URL is a data URL.
type part struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// UnmarshalJSON reads either form; unknown fields of a part are refused.
func (c *content) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &c.Text)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&c.Parts)
	for _, p := range c.Parts {
		c.Text += p.Text
	}
	return err
}

// Files returns the media types and contents of the data URLs in a message, as "type:content".
func (m message) Files() (files []string) {
	if m.Content == nil {
		return nil
	}
	for _, p := range m.Content.Parts {
		if kind, content, ok := p.file(); ok {
			files = append(files, kind+":"+string(content))
		}
	}
	return files
}

// file returns what the data URL of a part holds.
func (p part) file() (kind string, content []byte, ok bool) {
	url := ""
	switch {
	case p.Type == "image_url" && p.Image != nil:
		url = p.Image.URL
	case p.Type == "file" && p.File != nil && p.File.Name != "":
		url = p.File.Data
	}
	kind, encoded, found := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	content, err := base64.StdEncoding.DecodeString(encoded)
	return kind, content, found && err == nil && http.DetectContentType(content) == kind
}

// checkParts checks that each part is a text or holds a file, which only the user may send.
func (m message) checkParts() string {
	if m.Content == nil {
		return ""
	}
	for _, p := range m.Content.Parts {
		_, _, isFile := p.file()
		switch {
		case p.Type == "text" && p.Text != "":
		case !isFile:
			return "a part of type " + p.Type + " without a valid content"
		case m.Role != "user":
			return "files have no place in the role " + m.Role
		}
	}
	return ""
}

// Text returns the content, or "".
func (m message) Text() string {
	if m.Content == nil {
		return ""
	}
	return m.Content.Text
}

// sentCall is a tool call that comes back as part of the conversation.
type sentCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// tool is a tool that the request offers to the model.
type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// body has the fields that the service knows; others are refused.
type body struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Tools         []tool    `json:"tools"`
	Stream        bool      `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int     `json:"max_tokens"`
	MaxCompletionTokens *int     `json:"max_completion_tokens"`
	ReasoningEffort     string   `json:"reasoning_effort"`
	Temperature         *float64 `json:"temperature"`
	ToolChoice          any      `json:"tool_choice"`
}

// parse parses a body. fault describes the malformed part.
func parse(header http.Header, raw []byte) (q request, fault string) {
	q = request{Header: header.Clone(), Raw: raw}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&q.body); err != nil {
		return q, "We could not parse the JSON body of your request: " + err.Error()
	}
	b := q.body
	q.Model, q.Messages, q.Tools, q.Stream, q.ReasoningEffort = b.Model, b.Messages, b.Tools, b.Stream, b.ReasoningEffort
	q.IncludeUsage = b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	for _, limit := range []*int{b.MaxTokens, b.MaxCompletionTokens} {
		if limit != nil {
			q.MaxTokens = *limit
		}
	}
	return q, ""
}

// Key returns the token of the request, or "".
func (q request) Key() string { return strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ") }

// Has reports whether text occurs anywhere in the conversation, including the system prompt and the arguments of tools.
func (q request) Has(text string) bool {
	return slices.ContainsFunc(q.Messages, func(m message) bool {
		return strings.Contains(m.Text(), text) ||
			slices.ContainsFunc(m.ToolCalls, func(c sentCall) bool { return strings.Contains(c.Function.Arguments, text) })
	})
}

// calls reports whether the conversation contains a tool call with this id.
func (q request) calls(id string) bool {
	return slices.ContainsFunc(q.Messages, func(m message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c sentCall) bool { return c.ID == id })
	})
}

// check returns the first rule that the request breaks, or "". Some rules are OpenAI's, some those of local models'
// templates: a request must be valid for all of them.
func (q request) check() string {
	switch {
	case q.Model == "":
		return "you must provide a model parameter"
	case len(q.Messages) == 0:
		return "[] is too short - 'messages'"
	case q.body.MaxTokens != nil && q.body.MaxCompletionTokens != nil:
		return "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
	case q.body.StreamOptions != nil && !q.Stream:
		return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	case q.body.MaxTokens != nil && *q.body.MaxTokens < 1, q.body.MaxCompletionTokens != nil && *q.body.MaxCompletionTokens < 1:
		return "max_tokens must be at least 1"
	}
	if fault := q.checkTools(); fault != "" {
		return fault
	}
	return q.checkMessages()
}

func (q request) checkTools() string {
	seen := map[string]bool{}
	for i, t := range q.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(t.Function.Parameters, &schema)
		switch {
		case t.Type != "function":
			return fmt.Sprintf("Invalid value: '%s'. Supported values are: 'function'. - 'tools.%d.type'", t.Type, i)
		case !isName(t.Function.Name):
			return fmt.Sprintf("Invalid 'tools[%d].function.name': string does not match pattern.", i)
		case seen[t.Function.Name]:
			return fmt.Sprintf("Invalid 'tools[%d].function.name': the name is given twice.", i)
		case schema.Type != "object":
			return fmt.Sprintf("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'", t.Function.Name)
		}
		seen[t.Function.Name] = true
	}
	return ""
}

func (q request) checkMessages() string {
	var open []string // calls without an answer
	seen := map[string]bool{}
	before := ""
	for i, m := range q.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return unanswered(open)
		}
		if fault := m.check(i, before); fault != "" {
			return fmt.Sprintf("messages[%d]: %s", i, fault)
		}
		if m.Role == "tool" {
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return fmt.Sprintf("messages[%d]: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.", i)
			}
			open = slices.Delete(open, at, at+1)
		}
		for _, c := range m.ToolCalls {
			if seen[c.ID] {
				return fmt.Sprintf("messages[%d]: the tool call id %q is given twice", i, c.ID)
			}
			seen[c.ID] = true
			open = append(open, c.ID)
		}
		before = m.Role
	}
	switch {
	case len(open) > 0:
		return unanswered(open)
	case before == "assistant" || before == "system":
		return "the last message must be of the user or of a tool"
	}
	return ""
}

func unanswered(open []string) string {
	return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
		"The following tool_call_ids did not have response messages: " + strings.Join(open, ", ")
}

// check checks a message alone, and the role of the one before it.
func (m message) check(i int, before string) string {
	empty := strings.TrimSpace(m.Text()) == "" && len(m.Files()) == 0
	if fault := m.checkParts(); fault != "" {
		return fault
	}
	switch {
	case !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role):
		return fmt.Sprintf("Invalid value: '%s' as role", m.Role)
	case m.Role == "system" && i > 0:
		return "a system message must be the first"
	case m.Role == before && m.Role != "tool":
		return "roles must alternate, but two are of the role " + m.Role
	case m.Role != "assistant" && len(m.ToolCalls) > 0, m.Role != "tool" && m.ToolCallID != "":
		return "tool calls and their ids have no place in the role " + m.Role
	case m.Role != "assistant" && empty:
		return "content must be a string that is not empty"
	case m.Role == "assistant" && empty && len(m.ToolCalls) == 0:
		return "an assistant message must have content or tool_calls"
	}
	for _, c := range m.ToolCalls {
		var arguments map[string]any
		switch {
		case c.ID == "" || c.Type != "function" || !isName(c.Function.Name):
			return fmt.Sprintf("a tool call without id, type or name: %+v", c)
		case json.Unmarshal([]byte(c.Function.Arguments), &arguments) != nil || arguments == nil:
			return "the arguments of a tool call must be a JSON object: " + c.Function.Arguments
		}
	}
	return ""
}

func isName(name string) bool { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(name) }
