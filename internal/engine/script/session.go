package script

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// prefix begins the script engine's session ids, so that other engines refuse them.
const prefix = "s-"

// line is a line of a session's file: first the header, then messages.
type line struct {
	Type      string     `json:"type"` // session or message
	ID        string     `json:"id,omitempty"`
	ParentID  string     `json:"parent_id,omitempty"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
	Turn      int        `json:"turn,omitempty"` // number of turns before this session's own
	Message   *message   `json:"message,omitempty"`
	Run       string     `json:"run,omitempty"`   // set with a prompt: the run that it belongs to
	Open      bool       `json:"open,omitempty"`  // set with a prompt: the turn ends with the next line that has Count
	Count     *count     `json:"count,omitempty"` // set with the last line of a turn: the count of all lines up to it
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Aside   bool   `json:"aside,omitempty"` // a reminder or a summary, which is not a turn of its own
}

// session is a conversation of the script engine. A turn is written while it is played: its prompt and first message at once, before the
// message is reported.
type session struct {
	id    string
	path  string // path of the file; "" for a session that is not kept
	count        // count of the complete turns
	all   count  // count that includes the present turn
	open  bool   // a turn has begun and not ended: it is in progress, or its process was killed
	start int64  // length of the file before the turn
}

// count is the length of a session.
type count struct {
	Turn     int `json:"turn"` // turns so far, including those before a branch or a compaction
	Own      int `json:"own"`  // turns in this file
	Messages int `json:"messages"`
	Tokens   int `json:"tokens"`
}

func (e *Engine) begin(parent string, turn int, kept bool) (*session, error) {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	s := &session{id: prefix + hex.EncodeToString(b), count: count{Turn: turn}, all: count{Turn: turn}}
	if !kept {
		return s, nil
	}
	s.path = e.path(s.id)
	now := e.Now()
	header := line{Type: "session", ID: s.id, ParentID: parent, Timestamp: &now, Turn: turn}
	if err := store.AppendJSON(s.path, store.Buffered, header); err != nil {
		return nil, err
	}
	return s, nil
}

// branch begins a session with the complete turns of another.
func (e *Engine) branch(source *session, kept bool) (*session, error) {
	if !kept {
		s, err := e.begin("", 0, false)
		s.count = source.count
		return s, err
	}
	s, err := e.begin(source.id, source.Turn-source.Own, true)
	if err != nil {
		return nil, err
	}
	var messages []message
	complete := -1 // number of complete messages; -1: all of them
	for l, err := range store.Lines[line](source.path, nil) {
		if err != nil {
			return nil, err
		}
		if l.Open {
			complete = len(messages)
		}
		if l.Message != nil {
			messages = append(messages, *l.Message)
		}
		if l.Count != nil {
			complete = -1
		}
	}
	if complete >= 0 {
		messages = messages[:complete]
	}
	return s, s.add(messages...)
}

// Sessions lists the sessions on disk. It leaves out a file with an unreadable header.
func Sessions(h paths.Dir) (list []transcript.Summary, err error) {
	entries, err := store.List(h.ScriptSessions())
	for _, entry := range entries {
		path := filepath.Join(h.ScriptSessions(), entry.Name())
		info, infoErr := entry.Info()
		for l, lineErr := range store.Lines[line](path, nil) {
			if lineErr == nil && infoErr == nil && l.Type == "session" && l.ID+".jsonl" == entry.Name() {
				list = append(list, transcript.Summary{
					Transcript: transcript.Transcript{Path: path, Header: transcript.Header{ID: l.ID, ParentID: l.ParentID}}, Modified: info.ModTime(),
				})
			}
			break
		}
	}
	return list, err
}

func (e *Engine) path(id string) string { return filepath.Join(e.Home.ScriptSessions(), id+".jsonl") }

// open reads a session. The error wraps engine.ErrForeignSession or engine.ErrSessionUnknown.
func (e *Engine) open(id string) (*session, error) {
	if !strings.HasPrefix(id, prefix) || filepath.Base(id) != id { // the id is part of a file name and must not lead out of the directory
		return nil, engine.Foreign(id)
	}
	if _, err := os.Stat(e.path(id)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, id)
	}
	s := &session{id: id, path: e.path(id)}
	for l, err := range store.Newest[line](s.path) {
		if err == nil && l.Count != nil {
			s.count, s.all = *l.Count, *l.Count
			return s, nil
		}
		break // a session without a turn, one whose last turn is open, or a file that another program has written
	}
	for l, err := range store.Lines[line](s.path, nil) {
		switch {
		case err != nil:
			return nil, err
		case l.Type == "session":
			s.all.Turn = l.Turn
		case l.Message != nil:
			s.open = s.open || l.Open
			s.all.remember(l.Message.Role, l.Message.Aside, len(l.Message.Content))
		}
		if l.Count != nil {
			s.all, s.open = *l.Count, false
		}
		if !s.open {
			s.count = s.all
		}
	}
	return s, nil
}

// resume opens a session to continue it. It closes a turn that was cut off by a kill.
func (e *Engine) resume(id string) (*session, error) {
	s, err := e.open(id)
	if err == nil && s.open {
		err = s.write(part{ends: true, messages: []message{{Role: transcript.Assistant, Content: transcript.CutOff}}})
	}
	return s, err
}

// part is a part of a turn.
type part struct {
	run      string
	begins   bool // the first message is the prompt
	ends     bool
	messages []message
}

// write appends a part of a turn.
func (s *session) write(p part) error {
	if p.begins {
		s.all = s.count
	}
	lines, all := []*line{}, s.all
	for _, m := range p.messages {
		all.remember(m.Role, m.Aside, len(m.Content))
		lines = append(lines, &line{Type: "message", Message: &m})
	}
	if p.begins {
		lines[0].Run, lines[0].Open = p.run, !p.ends
	}
	if len(lines) == 0 {
		lines = append(lines, &line{Type: "end"})
	}
	if p.ends {
		lines[len(lines)-1].Count = &all
	}
	if err := s.append(p.begins, lines); err != nil {
		return err
	}
	s.all, s.open = all, !p.ends
	if p.ends {
		s.count = all
	}
	return nil
}

// append appends lines to the file: all of them or none.
func (s *session) append(begins bool, lines []*line) error {
	if s.path == "" {
		return nil
	}
	if begins {
		info, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		s.start = info.Size()
	}
	values := make([]any, len(lines))
	for i, l := range lines {
		values[i] = l
	}
	return store.AppendJSON(s.path, store.Buffered, values...)
}

// drop removes the present turn.
func (s *session) drop() error {
	if !s.open {
		return nil
	}
	s.open = false
	if s.path == "" {
		return nil
	}
	return os.Truncate(s.path, s.start)
}

// add appends complete turns.
func (s *session) add(messages ...message) error {
	if len(messages) == 0 {
		return nil
	}
	return s.write(part{ends: true, messages: messages})
}

// Answered reports whether the agent has said or done anything in a run. The session then contains the prompt.
func Answered(h paths.Dir, id, run string) (bool, error) {
	e := &Engine{Home: h}
	if _, err := e.open(id); err != nil {
		return false, err
	}
	for l, err := range store.Newest[line](e.path(id)) {
		if err != nil || l.Run == run {
			return err == nil, err
		}
	}
	return false, nil
}

// read adds a message of the request to the count.
func (s *session) read(m transcript.Message) {
	size, result := 0, false
	for _, b := range m.Content {
		size += len(b.Text) + len(b.Input) + len(b.Content)
		result = result || b.Type == transcript.ToolResult
	}
	s.remember(m.Role, result, size)
}

// remember adds a message of so many bytes to the count.
func (c *count) remember(role string, aside bool, size int) {
	c.Messages, c.Tokens = c.Messages+1, c.Tokens+tokens(size)
	if role == "user" && !aside {
		c.Turn, c.Own = c.Turn+1, c.Own+1
	}
}

// compact begins the session that continues s. The summary is its only message; the count of turns continues.
func (e *Engine) compact(s *session, instructions string) (*session, engine.Compaction, error) {
	summary := e.Script.Summary
	if summary == "" {
		summary = fmt.Sprintf("Summary of %s by these instructions: %s", plaintext.Count(s.Messages, "message"), instructions)
	}
	next, err := e.begin(s.id, s.Turn, s.path != "")
	if err != nil {
		return nil, engine.Compaction{}, err
	}
	if err := next.add(message{Role: "user", Content: summary, Aside: true}); err != nil {
		return nil, engine.Compaction{}, err
	}
	return next, engine.Compaction{Session: next.id, Summary: summary, Before: s.Tokens, After: next.Tokens}, nil
}
