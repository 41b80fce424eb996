package script

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/home"
	"github.com/ollim/ollim/internal/store"
	"github.com/ollim/ollim/internal/transcript"
)

// prefix marks the script engine's session ids, so that no other engine takes one for its own.
const prefix = "s-"

// line is a line of a session's file: a header first, then messages.
type line struct {
	Type      string     `json:"type"` // session or message
	ID        string     `json:"id,omitempty"`
	ParentID  string     `json:"parent_id,omitempty"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
	Turn      int        `json:"turn,omitempty"` // turns before this session's own
	Message   *message   `json:"message,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Aside   bool   `json:"aside,omitempty"` // a reminder or a summary, not a turn of its own
}

// session is a conversation of the script engine, and the file it is kept in.
type session struct {
	id       string
	path     string
	turn     int // turns so far, those before a branch or a compaction included
	messages []message
}

func (e *Engine) begin(parent string, turn int, messages []message) (*session, error) {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails
	s := &session{id: prefix + hex.EncodeToString(b), turn: turn}
	s.path = e.path(s.id)
	now := e.Now()
	header := line{Type: "session", ID: s.id, ParentID: parent, Timestamp: &now, Turn: turn}
	if err := store.AppendJSON(s.path, header, store.Buffered); err != nil {
		return nil, err
	}
	return s, s.add(messages...)
}

// Sessions lists the sessions that are on disk. A file whose header cannot be read is left out.
func Sessions(h home.Dir) (list []transcript.Summary, err error) {
	entries, err := os.ReadDir(h.ScriptSessions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
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

// open reads a session; engine.ErrForeignSession and engine.ErrSessionUnknown say why there is none.
func (e *Engine) open(id string) (*session, error) {
	if !strings.HasPrefix(id, prefix) || filepath.Base(id) != id { // an id names a file and must not lead out of the folder
		return nil, engine.Foreign(id)
	}
	if _, err := os.Stat(e.path(id)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", engine.ErrSessionUnknown, id)
	}
	s := &session{id: id, path: e.path(id)}
	for l, err := range store.Lines[line](s.path, nil) {
		switch {
		case err != nil:
			return nil, err
		case l.Type == "session":
			s.turn = l.Turn
		case l.Message != nil:
			s.remember(*l.Message)
		}
	}
	return s, nil
}

func (s *session) add(messages ...message) error {
	if len(messages) == 0 {
		return nil
	}
	lines := make([]any, len(messages))
	for i := range messages {
		lines[i] = line{Type: "message", Message: &messages[i]}
	}
	if err := store.AppendAllJSON(s.path, store.Buffered, lines...); err != nil { // a kill leaves all of a turn or nothing
		return err
	}
	for _, m := range messages {
		s.remember(m)
	}
	return nil
}

func (s *session) remember(m message) {
	s.messages = append(s.messages, m)
	if m.Role == "user" && !m.Aside {
		s.turn++
	}
}

// context is the size of the conversation in tokens.
func (s *session) context() (n int) {
	for _, m := range s.messages {
		n += tokens(m.Content)
	}
	return n
}

// compact begins the session that follows s: the summary is its only message. The turn count goes on.
func (e *Engine) compact(s *session, instructions string) (*session, engine.Compaction, error) {
	summary := e.Script.Summary
	if summary == "" {
		summary = fmt.Sprintf("Summary of %s by these instructions: %s", plural(len(s.messages), "message"), instructions)
	}
	next, err := e.begin(s.id, s.turn, nil)
	if err != nil {
		return nil, engine.Compaction{}, err
	}
	if err := next.add(message{Role: "user", Content: summary, Aside: true}); err != nil {
		return nil, engine.Compaction{}, err
	}
	return next, engine.Compaction{Session: next.id, Summary: summary, Before: s.context(), After: next.context()}, nil
}
