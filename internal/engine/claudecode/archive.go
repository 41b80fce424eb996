package claudecode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Archive reads the sessions that the command keeps. It never changes one.
type Archive struct {
	Env []string // of the command
}

// past is one line of a session file, as far as Archive reads it.
type past struct {
	Type      string    `json:"type"`
	Subtype   string    `json:"subtype"`
	Timestamp time.Time `json:"timestamp"`
	Cwd       string    `json:"cwd"`
	UUID      string    `json:"uuid"`
	Parent    string    `json:"parentUuid"`
	Before    string    `json:"logicalParentUuid"` // of the line after a compaction
	Summary   bool      `json:"isCompactSummary"`
	Aside     bool      `json:"isSidechain"` // of a subagent
	Meta      bool      `json:"isMeta"`      // neither of the user nor of the agent
	Failure   bool      `json:"isApiErrorMessage"`
	Message   struct {
		ID      string          `json:"id"`
		Role    string          `json:"role"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// Find returns the session of an id, with a header made from the lines of its file. The error wraps transcript.ErrUnknown.
func (a Archive) Find(id string) (transcript.Transcript, error) {
	none := fmt.Errorf("%w: %.100q", transcript.ErrUnknown, id)
	if engine.Holder(id) != engine.ClaudeCode {
		return transcript.Transcript{}, none
	}
	found := (&Engine{Env: a.Env}).transcripts(id)
	if len(found) == 0 {
		return transcript.Transcript{}, none
	}
	t := transcript.Transcript{Path: found[0], Header: transcript.Header{ID: id, Provider: engine.ClaudeCode}}
	lines, _, err := readPast(t.Path)
	for _, l := range lines {
		if t.Timestamp.IsZero() {
			t.Timestamp = l.Timestamp
		}
		if l.Cwd != "" {
			t.Cwd = l.Cwd
		}
		if l.said() && l.Type == transcript.Assistant {
			t.Model = l.Message.Model
		}
	}
	return t, err
}

// Holds reports whether a transcript is a session file of the command.
func (a Archive) Holds(t transcript.Transcript) bool {
	return t.Provider == engine.ClaudeCode && filepath.Base(t.Path) == t.ID+".jsonl"
}

// Load reads the conversation of a session, with summaries and without subagents. The lines of one answer are one message. Turns that
// were cut off and left out are not part of it. With current it reads only what the model still has: from the last summary on.
func (a Archive) Load(t transcript.Transcript, current bool, bad *int) ([]transcript.Entry, error) {
	lines, unread, err := readPast(t.Path)
	*bad += unread
	var entries []transcript.Entry
	answer := ""
	for _, l := range conversation(lines) {
		if current && l.Summary {
			entries = nil
		}
		if n := len(entries); n > 0 && answer != "" && l.Message.ID == answer {
			entries[n-1].Message.Content = append(entries[n-1].Message.Content, l.blocks()...)
			continue
		}
		answer = l.Message.ID
		entries = append(entries, transcript.Entry{At: l.Timestamp, Message: transcript.Message{Role: l.Message.Role, Content: l.blocks()}})
	}
	return entries, err
}

// Answered reports whether the model has answered a prompt of a session. prompt reports whether a text is that prompt.
func (a Archive) Answered(t transcript.Transcript, prompt func(text string) bool) (bool, error) {
	lines, _, err := readPast(t.Path)
	asked := false
	for _, l := range conversation(lines) {
		switch {
		case l.Summary: // made by the command between a prompt and its answer
		case l.Type == transcript.User:
			asked = prompt(transcript.Message{Role: transcript.User, Content: l.blocks()}.Text())
		case asked && l.Message.Model != synthetic:
			return true, nil
		}
	}
	return false, err
}

// conversation returns the messages on the path from the first line to the last message, in the order of the file.
func conversation(lines []past) (said []past) {
	at := map[string]past{}
	leaf := past{}
	for _, l := range lines {
		if l.UUID != "" && !l.Aside {
			at[l.UUID] = l
			if l.said() {
				leaf = l
			}
		}
	}
	path := map[string]bool{}
	for l, known := leaf, leaf.UUID != ""; known && !path[l.UUID]; l, known = at[cmp.Or(l.Parent, l.Before)] {
		path[l.UUID] = true
	}
	for _, l := range lines {
		if l.said() && (path[l.UUID] || l.Summary) {
			said = append(said, l)
		}
	}
	return said
}

func (l past) said() bool {
	return (l.Type == transcript.User || l.Type == transcript.Assistant) && l.Type == l.Message.Role && !l.Aside && !l.Meta && !l.Failure
}

func (l past) blocks() (list []transcript.Block) {
	var text string
	if json.Unmarshal(l.Message.Content, &text) == nil {
		return transcript.Said(l.Message.Role, text).Content
	}
	var parts []struct {
		block
		Signature string `json:"signature"`
	}
	_ = json.Unmarshal(l.Message.Content, &parts) // what is not a block has no text
	for _, p := range parts {
		b := transcript.Block{
			Type: p.Type, Text: p.Text, Thinking: p.Thinking, Signature: p.Signature, ID: p.ID, Name: p.Name, Input: p.Input,
			ToolUseID: p.ToolUseID, IsError: p.IsError,
		}
		if p.Type == transcript.ToolResult {
			b.Content = textOf(p.Content)
		}
		list = append(list, b)
	}
	return list
}

// readPast reads a session file, which must be a regular file; bad counts the lines that are no JSON. It leaves out an incomplete last
// line.
func readPast(path string) (list []past, bad int, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, 0, err
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(f); err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(text.Bytes()) {
		var l past
		switch {
		case !bytes.HasSuffix(line, []byte("\n")), strings.TrimSpace(string(line)) == "":
		case json.Unmarshal(line, &l) != nil:
			bad++
		default:
			list = append(list, l)
		}
	}
	return list, bad, nil
}
