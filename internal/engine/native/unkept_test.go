package native_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// files lists everything in the directory of the transcripts.
func (s *stage) files() (all []string) {
	s.t.Helper()
	err := filepath.WalkDir(string(s.Sessions), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// blocks is messages as lines, one for each block.
func blocks(messages []transcript.Message) (all []string) {
	for _, m := range messages {
		for _, b := range m.Content {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s%s%s", m.Role, b.Type, b.Text, b.Name, b.Content)))
		}
	}
	return all
}

// asked is the latest question, a line for each block.
func (s *stage) asked() (all []string) {
	s.t.Helper()
	requests := s.api.Requests()
	for _, m := range requests[len(requests)-1].Messages {
		for _, b := range m.Content {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s%s%s", m.Role, b.Type, b.Text, b.Name, b.ResultText)))
		}
	}
	return all
}

// window is the messages of a channel: a question that a tool answered.
func window() []transcript.Message {
	return []transcript.Message{
		transcript.Said(transcript.User, "what is oil at?"),
		{Role: transcript.Assistant, Content: []transcript.Block{{Type: transcript.ToolUse, ID: "a", Name: "ping_user", Input: json.RawMessage(`{}`)}}},
		{Role: transcript.User, Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: "a", Content: "80"}}},
		transcript.Said(transcript.Assistant, "80 dollars"),
	}
}

// TestMessages: the messages of a request come before its prompt, and the result holds those of the turn, with calls and results.
func TestMessages(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Thinking: "hm", ToolUses: []anthropicapi.ToolUse{{Name: "ping_user"}, {Name: "Write"}}}, anthropicapi.Reply{Text: "75"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "and gas?"}, Session: engine.Session{Messages: window()}}, "75")
	history := []string{
		"user text what is oil at?", "assistant tool_use ping_user", "user tool_result 80", "assistant text 80 dollars", "user text and gas?",
	}
	turn := []string{
		"assistant tool_use ping_user", "assistant tool_use Write", "user tool_result done ping_user", "user tool_result there is no tool Write here",
		"assistant text 75",
	}
	same(t, blocks(r.Messages), turn)
	s.api.Reply(anthropicapi.Reply{Text: "sure"})
	next := append(append(window(), transcript.Said(transcript.User, "and gas?")), r.Messages...)
	if r := s.says(engine.Request{Input: engine.Input{Prompt: "are you sure?"}, Session: engine.Session{Messages: next}}, "sure"); len(r.Messages) != 1 {
		t.Errorf("%+v", r.Messages)
	}
	same(t, s.asked(), append(append(history, turn...), "user text are you sure?"))
	if v := s.api.Violations(); len(v) > 0 {
		t.Error(v)
	}
	if all := s.files(); len(all) > 0 {
		t.Error(all)
	}
}

// TestUnkept: a session that is not kept has no file at any time, also if it is a branch or is compacted.
func TestUnkept(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	kept := s.files()
	for name, session := range map[string]engine.Session{
		"new": {Discard: true}, "branch": {ID: old.Session, Fork: true, Discard: true}, "messages": {Messages: window()},
		"continued": {ID: old.Session, Discard: true}, "followed branch": {ID: old.Session, Fork: true, Follow: true, Discard: true},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s.api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
				if all := s.files(); len(all) != len(kept) {
					t.Errorf("files %v", all)
				}
				if session.Fork && calls == 0 && !q.Has("AAPL is at 210") {
					t.Error("the branch lacks the session")
				}
				calls++
				switch {
				case strings.Contains(q.LastUserText(), "about to be replaced"):
					return anthropicapi.Reply{Text: "AAPL, in short"}
				case calls == 1:
					return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "compact_session"}}}
				}
				return anthropicapi.Reply{Text: "done"}
			})
			r := s.says(engine.Request{Input: engine.Input{Prompt: "go"}, Session: session}, "done")
			if _, err := s.Sessions.Find(r.Session); err == nil || calls != 3 || r.Session == old.Session {
				t.Errorf("session %s is found, %d calls", r.Session, calls)
			}
			same(t, s.asked()[:1], []string{"user text Summary of the conversation so far:\n\nAAPL, in short"})
		})
	}
	same(t, s.files(), kept)
}
