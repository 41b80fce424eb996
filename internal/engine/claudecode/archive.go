package claudecode

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Path returns the file of the session with an id. The error wraps transcript.ErrUnknown.
func (e *Engine) Path(id string) (string, error) {
	if engine.Holder(id) == engine.ClaudeCode {
		if found := e.transcripts(id); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("%w: %.100q", transcript.ErrUnknown, id)
}

// Sessions lists the sessions that sealed commands began. The path of each is its directory, which contains more than the transcript. A
// directory without a transcript is listed without an id.
func (e *Engine) Sessions() (list []transcript.Summary, err error) {
	folders, err := store.List(e.Home.ClaudeSessions())
	for _, folder := range folders {
		s := transcript.Summary{Transcript: transcript.Transcript{Path: e.config(folder.Name()), Header: transcript.Header{Provider: engine.ClaudeCode}}}
		for _, path := range append(e.sealed(folder.Name()), s.Path) {
			info, statErr := os.Stat(path)
			if statErr != nil {
				continue // it was removed meanwhile
			}
			if path != s.Path {
				s.ID = folder.Name()
			}
			if info.ModTime().After(s.Modified) {
				s.Modified = info.ModTime()
			}
		}
		list = append(list, s)
	}
	return list, err
}

// Find returns the session with an id. The error wraps transcript.ErrUnknown.
func (e *Engine) Find(id string) (transcript.Transcript, error) {
	path, err := e.Path(id)
	if err != nil {
		return transcript.Transcript{}, err
	}
	return e.Open(path)
}

// FindPrefix is Find for a prefix that a person typed. The error wraps transcript.ErrUnknown or transcript.ErrAmbiguous.
func (e *Engine) FindPrefix(prefix string) (transcript.Transcript, error) {
	var ids []string
	if prefix != "" && strings.Trim(prefix, "0123456789abcdefABCDEF-") == "" { // the characters of an id are no wildcards
		shared, _ := filepath.Glob(filepath.Join(e.shared(), "projects", "*", prefix+"*.jsonl")) // the pattern is valid
		own, _ := filepath.Glob(e.config(prefix + "*"))
		for _, path := range append(shared, own...) {
			if id := idOf(path); engine.Holder(id) == engine.ClaudeCode && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) > 1 {
		slices.Sort(ids)
		return transcript.Transcript{}, fmt.Errorf("%w begins with %q: %s", transcript.ErrAmbiguous, prefix, plaintext.Short(strings.Join(ids, ", "), 400))
	}
	return e.Find(strings.Join(ids, ""))
}

// Open returns the session at path, with a header made from its lines. The error wraps transcript.ErrForeign if the command did not
// write it.
func (e *Engine) Open(path string) (transcript.Transcript, error) {
	lines, err := readPast(path, nil)
	if err != nil {
		return transcript.Transcript{}, err
	}
	return opened(path, lines)
}

// opened is Open for a file whose lines were read already.
func opened(path string, lines []record) (transcript.Transcript, error) {
	t := transcript.Transcript{Path: path, Form: engine.ClaudeCode, Header: transcript.Header{ID: idOf(path), Provider: engine.ClaudeCode}}
	known := false
	for _, l := range lines {
		known = known || l.UUID != "" && l.SessionID != ""
		if t.Timestamp.IsZero() {
			t.Timestamp = l.Timestamp
		}
		t.Cwd = cmp.Or(l.Cwd, t.Cwd)
		if l.said() && l.Type == transcript.Assistant {
			t.Model = l.Message.Model
		}
	}
	if !known || !plaintext.IsName(t.ID) {
		return transcript.Transcript{}, fmt.Errorf("%s: %w", path, transcript.ErrForeign)
	}
	return t, nil
}

// idOf returns the id of the session that a file is named after.
func idOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".jsonl") }

// Load reads the conversation of a session, with summaries and without the messages of subagents. The lines of one answer become one
// message. It omits turns that were cut off and dropped from the history. With current it reads only what the model can still read: the
// last summary and what follows.
func (e *Engine) Load(t transcript.Transcript, current bool, bad *int) ([]transcript.Entry, error) {
	lines, err := readPast(t.Path, bad)
	said := conversation(lines)
	for i, l := range slices.Backward(said) {
		if current && l.Summary {
			said = said[i:]
			break
		}
	}
	return merged(said, nil), err
}

// Read is Open and Load for a search, see transcript.Search. It does not validate the parts of lines that it need not decode.
func (*Engine) Read(path string, maybe func(lines []byte) bool) (transcript.Transcript, []transcript.Entry, error) {
	lines, err := skimPast(path)
	if err != nil {
		return transcript.Transcript{}, nil, err
	}
	t, err := opened(path, lines)
	return t, merged(conversation(lines), maybe), err
}

// merged returns the messages of these lines. It omits the content of those for which maybe returns false; maybe may be nil.
func merged(said []record, maybe func(lines []byte) bool) (entries []transcript.Entry) {
	for len(said) > 0 {
		e := transcript.Entry{At: said[0].Timestamp, Message: transcript.Message{Role: said[0].Message.Role}}
		n, text := 1, []byte(said[0].Message.Content)
		for ; n < len(said) && said[0].Message.ID != "" && said[n].Message.ID == said[0].Message.ID; n++ {
			text = slices.Concat(text, said[n].Message.Content)
		}
		if maybe == nil || maybe(text) {
			for _, l := range said[:n] {
				e.Message.Content = append(e.Message.Content, l.blocks()...)
			}
		}
		entries, said = append(entries, e), said[n:]
	}
	return entries
}

// Answered reports whether the model has answered a prompt of a session. prompt reports whether a text is that prompt.
func (e *Engine) Answered(t transcript.Transcript, prompt func(text string) bool) (bool, error) {
	lines, err := readPast(t.Path, nil)
	asked := false
	for _, l := range conversation(lines) {
		switch {
		case l.Summary: // a summary that the command wrote between a prompt and its answer
		case l.Type == transcript.User:
			asked = prompt(transcript.Message{Role: transcript.User, Content: l.blocks()}.Text())
		case asked && l.Message.Model != synthetic:
			return true, nil
		}
	}
	return false, err
}

// conversation returns the messages on the path from the first line to the last message, in the order of the file.
func conversation(lines []record) (said []record) {
	at := map[string]*record{}
	var leaf *record
	for i := range lines {
		if l := &lines[i]; l.UUID != "" && !l.Sidechain {
			at[l.UUID] = l
			if l.said() {
				leaf = l
			}
		}
	}
	path := map[string]bool{}
	for l := leaf; l != nil && !path[l.UUID]; l = at[cmp.Or(l.Parent, l.Before)] {
		path[l.UUID] = true
	}
	for _, l := range lines {
		if l.said() && (path[l.UUID] || l.Summary) {
			said = append(said, l)
		}
	}
	return said
}

func (l record) said() bool {
	return (l.Type == transcript.User || l.Type == transcript.Assistant) && l.Type == l.Message.Role && !l.Sidechain && !l.Meta && !l.APIError
}

func (l record) blocks() (list []transcript.Block) {
	var text string
	if json.Unmarshal(l.Message.Content, &text) == nil {
		return transcript.Said(l.Message.Role, text).Content
	}
	var parts []struct {
		block
		Signature string          `json:"signature"`
		Title     string          `json:"title"`
		Source    json.RawMessage `json:"source"`
	}
	_ = json.Unmarshal(l.Message.Content, &parts) // content that is not a list of blocks has no text
	for _, p := range parts {
		b := transcript.Block{
			Type: p.Type, Text: p.Text, Thinking: p.Thinking, Signature: p.Signature, ID: p.ID, Name: p.Name, Input: p.Input,
			ToolUseID: p.ToolUseID, IsError: p.IsError, Source: pastSource(p.Source, p.Title),
		}
		if p.Type == transcript.ToolResult {
			b.Content = textOf(p.Content)
		}
		list = append(list, b)
	}
	return list
}

// readPast reads a session file. *bad counts the lines that are not JSON; bad may be nil.
func readPast(path string, bad *int) (list []record, err error) {
	for r, err := range store.Lines[record](path, bad) {
		if err != nil {
			return list, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		list = append(list, r)
	}
	return unsided(list), nil
}

// unsided returns the lines of a file. In a subagent's file it treats the subagent's messages as the conversation.
func unsided(list []record) []record {
	if !slices.ContainsFunc(list, func(r record) bool { return r.UUID != "" && !r.Sidechain }) {
		for i := range list {
			list[i].Sidechain = false
		}
	}
	return list
}
