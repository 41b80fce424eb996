// Package pi reads the session files of the pi coding agent, ~/.pi/agent/sessions/--DIRECTORY--/TIME_ID.jsonl: a header line, and
// entries that form a tree by their id and parentId. pi continues from the last entry of a file, so the conversation is the path
// from there to the root. Versions 1 (whose entries have no ids), 2 and 3 are read. Files are never changed.
package pi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Name is the form of a transcript that pi wrote.
const Name = "pi"

// entry is a line: the header or an entry of the tree.
type entry struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Parent    string `json:"parentId"`
	Timestamp string `json:"timestamp"`

	Version  int    `json:"version"`       // of the header
	Cwd      string `json:"cwd"`           // of the header
	Session  string `json:"parentSession"` // of the header: the path of the session that it is a fork of
	Branched string `json:"branchedFrom"`  // the same in version 1

	Provider string          `json:"provider"` // of model_change; in version 1 also of the header
	Model    string          `json:"modelId"`
	Summary  string          `json:"summary"` // of compaction and branch_summary
	Content  json.RawMessage `json:"content"` // of custom_message
	Message  message         `json:"message"`
}

type message struct {
	Role     string          `json:"role"`
	Content  json.RawMessage `json:"content"`
	Provider string          `json:"provider"` // of assistant
	Model    string          `json:"model"`
	Usage    struct {
		Tokens int `json:"totalTokens"`
	} `json:"usage"`
	ToolCall string `json:"toolCallId"` // of toolResult
	IsError  bool   `json:"isError"`
	Command  string `json:"command"` // of bashExecution
	Output   string `json:"output"`
}

// Open returns the session at path, with a header made from its lines. The error wraps transcript.ErrForeign if pi did not write it.
func Open(path string) (transcript.Transcript, error) {
	lines, err := read(path, nil)
	if err != nil {
		return transcript.Transcript{}, err
	}
	if len(lines) == 0 {
		return transcript.Transcript{}, fmt.Errorf("%s: %w", path, transcript.ErrForeign)
	}
	first := lines[0]
	h := transcript.Header{ID: first.ID, Cwd: first.Cwd, Provider: first.Provider, Model: first.Model}
	h.Timestamp, _, _ = timeparse.ISO(first.Timestamp)
	if parent := cmp.Or(first.Session, first.Branched); parent != "" {
		name := strings.TrimSuffix(filepath.Base(parent), ".jsonl")
		h.ParentID = name[strings.LastIndexByte(name, '_')+1:]
	}
	for _, l := range current(lines) {
		switch {
		case l.Type == "model_change":
			h.Provider, h.Model = l.Provider, l.Model
		case l.Message.Role == transcript.Assistant:
			h.Provider, h.Model = l.Message.Provider, l.Message.Model
		}
	}
	return transcript.Transcript{Path: path, Form: Name, Header: h}, nil
}

// Load reads the conversation of a session, with summaries. A summary, a message of an extension and a command that the user ran are
// messages of the user. *bad, which may be nil, counts the lines that are no JSON.
func Load(t transcript.Transcript, bad *int) (entries []transcript.Entry, err error) {
	lines, err := read(t.Path, bad)
	for _, l := range current(lines) {
		m := l.said()
		if len(m.Content) == 0 {
			continue
		}
		e := transcript.Entry{Message: m, Tokens: l.Message.Usage.Tokens}
		e.At, _, _ = timeparse.ISO(l.Timestamp)
		entries = append(entries, e)
	}
	return entries, err
}

// read returns the lines of a file, none if pi did not write it.
func read(path string, bad *int) (list []entry, err error) {
	for l, err := range store.Lines[entry](path, bad) {
		if err != nil {
			return list, err
		}
		if foreign := l.Type != "session" || !plaintext.IsName(l.ID) || l.Version == 0 && l.Model == ""; foreign && len(list) == 0 {
			return nil, nil
		}
		list = append(list, l)
	}
	return list, nil
}

// current returns the entries on the path from the root to the last one; all of them if they have no ids.
func current(lines []entry) (path []entry) {
	at := map[string]entry{}
	leaf := ""
	for _, l := range lines {
		if l.Type != "session" && l.ID != "" {
			at[l.ID], leaf = l, l.ID
		}
	}
	if leaf == "" {
		return lines
	}
	for id := leaf; id != ""; {
		l := at[id]
		delete(at, id) // a damaged file may have a circle of parents
		path, id = append(path, l), l.Parent
	}
	slices.Reverse(path)
	return path
}

// said returns an entry as a message, which has no content if the entry is not part of the conversation.
func (l entry) said() transcript.Message {
	m := l.Message
	switch {
	case l.Type == "compaction", l.Type == "branch_summary":
		return transcript.Said(transcript.User, l.Summary)
	case l.Type == "custom_message":
		return transcript.Message{Role: transcript.User, Content: blocks(l.Content)}
	case l.Type != "message":
		return transcript.Message{}
	case m.Role == transcript.Assistant:
		return transcript.Message{Role: transcript.Assistant, Content: blocks(m.Content)}
	case m.Role == "bashExecution":
		return transcript.Said(transcript.User, "$ "+m.Command+"\n"+m.Output)
	case m.Role == "toolResult":
		b := transcript.Block{Type: transcript.ToolResult, ToolUseID: m.ToolCall, IsError: m.IsError}
		shown := transcript.Message{Content: blocks(m.Content)}
		b.Content = shown.Text()
		if i := slices.IndexFunc(shown.Content, func(b transcript.Block) bool { return b.Source != nil }); i >= 0 {
			b.Source = shown.Content[i].Source
		}
		return transcript.Message{Role: transcript.User, Content: transcript.Blocks{b}}
	}
	return transcript.Message{Role: transcript.User, Content: blocks(m.Content)} // of the user or of an extension
}

// blocks reads a content: a text, or blocks of which the types are text, image, thinking and toolCall.
func blocks(content json.RawMessage) (list transcript.Blocks) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return transcript.Said(transcript.User, text).Content
	}
	var parts []struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Data      string          `json:"data"`
		MimeType  string          `json:"mimeType"`
	}
	_ = json.Unmarshal(content, &parts) // what is not a block has no text
	for _, p := range parts {
		switch p.Type {
		case "text":
			list = append(list, transcript.Block{Type: transcript.TextBlock, Text: p.Text})
		case "thinking":
			list = append(list, transcript.Block{Type: transcript.ThinkingBlock, Thinking: p.Thinking})
		case "toolCall":
			list = append(list, transcript.Block{Type: transcript.ToolUse, ID: p.ID, Name: p.Name, Input: p.Arguments})
		case "image":
			size := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(p.Data, "=")))
			list = append(list, (&transcript.Source{MediaType: p.MimeType, Size: size}).Block())
		}
	}
	return list
}
