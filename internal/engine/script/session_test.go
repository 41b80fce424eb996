package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

func TestSessionsOfOthers(t *testing.T) {
	s := newStage(t, fourTurns)
	if err := os.WriteFile(s.Home.Path("secret.jsonl"), []byte(`{"type":"session"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.Home.ScriptSessions(), 0o700); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]error{
		"s-00000000":                           engine.ErrSessionUnknown,
		"s-":                                   engine.ErrSessionUnknown,
		"n-01j00000000000000000000000":         engine.ErrForeignSession,
		"7f3e1b9c-1111-4222-8333-123456789abc": engine.ErrForeignSession,
		"s-x/../../../secret":                  engine.ErrForeignSession,
		"s-x/y":                                engine.ErrForeignSession,
	} {
		for _, fork := range []bool{false, true} {
			if _, err := s.run(engine.Request{Session: engine.Session{ID: id, Fork: fork}}); !errors.Is(err, want) || !strings.Contains(err.Error(), id) {
				t.Errorf("Run of %s: %v, want %v", id, err, want)
			}
			if len(s.events) > 0 {
				t.Errorf("Run of %s told %v", id, s.reported())
			}
		}
		if _, err := s.Compact(context.Background(), engine.Request{Session: engine.Session{ID: id}}, "", s.sink); !errors.Is(err, want) {
			t.Errorf("Compact of %s: %v, want %v", id, err, want)
		}
	}
	if entries, err := os.ReadDir(s.Home.ScriptSessions()); err != nil || len(entries) > 0 {
		t.Errorf("sessions were begun: %v, %v", entries, err)
	}
}

func TestErrorKeepsWhatWasSaid(t *testing.T) {
	s := newStage(t, "turns:\n  - - think: hm\n    - error: the line went dead\n  - - text: two\n")
	result, err := s.run(engine.Request{})
	if err == nil || err.Error() != "the line went dead" || result.Session == "" {
		t.Fatalf("%+v, %v", result, err)
	}
	if want := []string{"session script engine, no model: turn 1", "thinking hm"}; !slices.Equal(s.reported(), want) {
		t.Errorf("told %q", s.reported())
	}
	s.says(engine.Request{Session: engine.Session{ID: result.Session}}, "two")
}

// A turn that ended before it began leaves a session to which it never happened.
func TestErrorAtOnce(t *testing.T) {
	s := newStage(t, "turns:\n  - - expect: go\n    - text: one\n  - - text: two\n")
	result, err := s.run(engine.Request{Input: engine.Input{Prompt: "stay"}})
	if err == nil || result.Session == "" {
		t.Fatalf("%+v, %v", result, err)
	}
	s.says(engine.Request{Input: engine.Input{Prompt: "go"}, Session: engine.Session{ID: result.Session}}, "one")
}

// What a process leaves that is killed somewhere in a turn: the file ends anywhere. Every session that was told of resumes.
func TestKilledHalfWay(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: one\n    - tool: a\n  - - text: two\n  - - text: three\n")
	id := s.says(engine.Request{Input: engine.Input{Prompt: "first"}}, "one").Session
	fork := s.says(engine.Request{Session: engine.Session{ID: id, Fork: true}, Input: engine.Input{Prompt: "second"}}, "two").Session
	path := filepath.Join(s.Home.ScriptSessions(), fork+".jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 0; size < len(whole); size += 7 {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second reads behind the torn line
			if result, err := s.run(engine.Request{Session: engine.Session{ID: fork}}); err != nil || result.Session != fork {
				t.Fatalf("cut at %d: %+v, %v", size, result, err)
			}
		}
	}
}

func TestKilledInACall(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: one\n  - - text: half\n    - tool: a\n    - text: two\n")
	id := s.says(engine.Request{}, "one").Session
	func() {
		defer func() { _ = recover() }()
		result, err := s.Run(context.Background(), engine.Request{Session: engine.Session{ID: id}}, &s.tools, func(e runlog.Event) error {
			if e.Type == runlog.ToolResult {
				panic("the process ends here")
			}
			return nil
		})
		t.Errorf("not killed: %+v, %v", result, err)
	}()
	s.says(engine.Request{Session: engine.Session{ID: id}}, "two")
}

// TestKilledAfterAWord: the session has the prompt of a turn, and what was said, as soon as an event has a word of it. The next turn
// finds it closed, a branch does without it, and a run that left nothing in the events is found by its prompt.
func TestKilledAfterAWord(t *testing.T) {
	for _, step := range []string{"text: half", "think: half", "tool: half"} {
		s := newStage(t, "turns:\n  - - text: one\n  - - "+step+"\n    - text: never\n  - - text: two\n")
		id := s.says(engine.Request{Input: engine.Input{Prompt: "first"}}, "one").Session
		dying := engine.Request{Run: engine.Run{ID: "r-2"}, Session: engine.Session{ID: id}, Input: engine.Input{Prompt: "six updates"}}
		func() {
			defer func() { _ = recover() }()
			_, err := s.Run(t.Context(), dying, &s.tools, func(e runlog.Event) error {
				if e.Type != runlog.Session {
					panic("the process ends here")
				}
				return nil
			})
			t.Errorf("%s: not killed: %v", step, err)
		}()
		if answered, err := script.Answered(s.Home, id, "r-2"); !answered || err != nil {
			t.Errorf("%s: answered %t, %v", step, answered, err)
		}
		if answered, err := script.Answered(s.Home, id, "r-3"); answered || err != nil {
			t.Errorf("%s: another run answered %t, %v", step, answered, err)
		}
		read := func(id string) string {
			t.Helper()
			text, err := os.ReadFile(filepath.Join(s.Home.ScriptSessions(), id+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		branch := s.says(engine.Request{Session: engine.Session{ID: id, Fork: true}, Input: engine.Input{Prompt: "aside"}}, "never").Session
		if text := read(branch); strings.Contains(text, "six updates") || !strings.Contains(text, "first") {
			t.Errorf("%s: the branch is\n%s", step, text)
		}
		s.says(engine.Request{Session: engine.Session{ID: id}, Input: engine.Input{Prompt: "third"}}, "two")
		text := read(id)
		before, after, _ := strings.Cut(text, "This turn was cut off")
		if !strings.Contains(before, "six updates") || strings.Contains(before, "third") || !strings.Contains(after, "third") {
			t.Errorf("%s: the session is\n%s", step, text)
		}
		if branch := s.says(engine.Request{Session: engine.Session{ID: id, Fork: true}}, "two").Session; !strings.Contains(read(branch), "six updates") {
			t.Errorf("%s: a later branch does without the turn", step)
		}
	}
}

// A turn that failed after it had begun has an end in the session, and a branch has it too.
func TestFailedTurnIsClosed(t *testing.T) {
	s := newStage(t, "turns:\n  - - tool: a\n    - error: the line went dead\n  - - text: two\n")
	result, err := s.run(engine.Request{Input: engine.Input{Prompt: "first"}})
	if err == nil {
		t.Fatal("the turn did not fail")
	}
	fork := s.says(engine.Request{Session: engine.Session{ID: result.Session, Fork: true}, Input: engine.Input{Prompt: "second"}}, "two").Session
	text, err := os.ReadFile(filepath.Join(s.Home.ScriptSessions(), fork+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(string(text), "This turn was cut off")
	if !strings.Contains(first, `"first"`) || !strings.Contains(first, "tool_result") || !strings.Contains(second, `"second"`) {
		t.Errorf("the branch is\n%s", text)
	}
	if strings.Contains(string(text), "\n\n") {
		t.Error("there are empty lines")
	}
}

// TestMessages: a turn counts the turns of the messages that it is given, and returns its own; none of it has a file.
func TestMessages(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: one\n  - - text: two\n  - - text: first\n    - tool: ping_user\n      input: {a: 1}\n    - compact: keep\n    - text: three\n")
	window := []transcript.Message{
		transcript.Said(transcript.User, "a"), transcript.Said(transcript.Assistant, "one"),
		transcript.Said(transcript.User, "b"), {Role: transcript.User, Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: "1"}}},
	}
	r := s.says(engine.Request{Input: engine.Input{Prompt: "c"}, Session: engine.Session{Messages: window}}, "three")
	if reported := s.reported(); reported[0] != "session script engine, no model: turn 3, after 4 messages" {
		t.Errorf("%q", reported)
	}
	want := []transcript.Message{
		{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.TextBlock, Text: "first"}, {Type: transcript.ToolUse, ID: "call-1", Name: "ping_user", Input: json.RawMessage(`{"a":1}`)},
		}},
		{Role: transcript.User, Content: []transcript.Block{{Type: transcript.ToolResult, ToolUseID: "call-1", Content: "done"}}},
		transcript.Said(transcript.Assistant, "three"),
	}
	if !reflect.DeepEqual(r.Messages, want) {
		t.Errorf("%+v", r.Messages)
	}
	s.says(engine.Request{Input: engine.Input{Prompt: "a"}, Session: engine.Session{Discard: true}}, "one")
	if _, err := os.Stat(s.Home.ScriptSessions()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sessions were written: %v", err)
	}
	main := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one").Session
	s.says(engine.Request{Input: engine.Input{Prompt: "b"}, Session: engine.Session{ID: main, Fork: true, Discard: true}}, "two")
	if list, err := script.Sessions(s.Home); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}
