package script_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// A session is counted, not held: what a fire needs in memory does not grow with the conversation.
func TestSessionIsNotHeld(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: one\n  - - text: two\n  - - text: three\n")
	id := s.says(engine.Request{Input: engine.Input{Prompt: "first"}}, "one").Session
	path := filepath.Join(s.Home.ScriptSessions(), id+".jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	const size, lines = 10_000, 1000
	for range lines {
		if _, err := f.WriteString(`{"type":"message","message":{"role":"assistant","content":"\u00e9` + strings.Repeat("x", size) + `"}}` + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	result, err := s.Run(t.Context(), engine.Request{Session: engine.Session{ID: id}, Input: engine.Input{Prompt: "second"}}, &s.tools, func(e runlog.Event) error {
		if e.Type == runlog.Text { // the session is open
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); after.HeapAlloc == 0 || held > size*lines/10 {
		t.Errorf("a session of %d bytes holds %d in memory", size*lines, held)
	}
	if want := lines * ((size + 2 + 3) / 4); result.Usage.In < want || result.Usage.In > want+50 { // é is two bytes
		t.Errorf("%d tokens, want about %d", result.Usage.In, want)
	}
	branch := s.says(engine.Request{Session: engine.Session{ID: id, Fork: true}, Input: engine.Input{Prompt: "again"}}, "three").Session
	if info, err := os.Stat(filepath.Join(s.Home.ScriptSessions(), branch+".jsonl")); err != nil || info.Size() < size*lines {
		t.Errorf("the branch: %v, %v", info, err)
	}
	s.says(engine.Request{Session: engine.Session{ID: branch}, Input: engine.Input{Prompt: "and again"}}, "three")
}

// The last line tells how long a session is: the lines before it are not read.
func TestSessionIsReadFromItsEnd(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: one\n  - - text: two\n  - - text: three\n")
	id := s.says(engine.Request{Input: engine.Input{Prompt: "first"}}, "one").Session
	s.says(engine.Request{Session: engine.Session{ID: id}, Input: engine.Input{Prompt: "second"}}, "two")
	path := filepath.Join(s.Home.ScriptSessions(), id+".jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(strings.TrimSuffix(string(text), "\n"), "\n") + 1
	if err := os.WriteFile(path, append([]byte("unreadable\n"), text[last:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.says(engine.Request{Session: engine.Session{ID: id}, Input: engine.Input{Prompt: "third"}}, "three")
}
