package channel

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The six acceptance criteria of channel sessions, one test each.

// TestSessionCreation: the first message creates a session with its id and its time.
func TestSessionCreation(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	if _, err := os.Lstat(w.path(n)); err == nil {
		t.Fatal("there is a session before the first message")
	}
	turn := w.begin(n, "Hello!")
	want := `{
  "session_id": "telegram_123456789",
  "channel": "telegram",
  "chat_id": "123456789",
  "created_at": "2026-02-14T10:30:00Z",
  "last_accessed": "2026-02-14T10:30:00Z",
  "messages": [
    {
      "role": "user",
      "content": "Hello!",
      "timestamp": "2026-02-14T10:30:00Z",
      "tool_calls": null
    }
  ]
}
`
	if got := w.text(n); got != want {
		t.Errorf("got %s", got)
	}
	if err := turn.End(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(w.path(n)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestSessionUpdate: a turn adds the user's message and the answer, and moves last_accessed, not created_at.
func TestSessionUpdate(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	w.say(n, "one", "1")
	w.pass(time.Hour)
	turn := w.begin(n, "two")
	if got := w.session(n).LastAccessed; !got.Equal(start.Add(time.Hour).Truncate(time.Second)) {
		t.Errorf("accessed at %s when the message has arrived", got)
	}
	w.pass(time.Minute)
	turn.Answer("2")
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	s := w.session(n)
	wantBrief(t, s.Messages, "user:one assistant:1 user:two assistant:2")
	if created, last := s.CreatedAt, s.LastAccessed; !created.Equal(start.Truncate(time.Second)) || last.Sub(created) != 61*time.Minute {
		t.Errorf("created %s, accessed %s", created, last)
	}
	if at := s.Messages[3].Timestamp; !at.Equal(s.LastAccessed) {
		t.Errorf("the answer is of %s", at)
	}
}

// TestFIFOManagement: the 51st message removes the oldest.
func TestFIFOManagement(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	for i := range maxMessages / 2 {
		w.say(n, numbered("q%d", i), numbered("a%d", i))
	}
	if s := w.session(n); len(s.Messages) != 50 || s.Messages[0].Content != "q0" {
		t.Fatalf("%d messages from %q", len(s.Messages), s.Messages[0].Content)
	}
	turn := w.begin(n, "q25")
	if s := w.session(n); len(s.Messages) != 50 || s.Messages[0].Content != "a0" || s.Messages[49].Content != "q25" {
		t.Errorf("%d messages from %q to %q", len(s.Messages), s.Messages[0].Content, s.Messages[49].Content)
	}
	if before := turn.Messages(); len(before) != 49 || before[0].Content != "a0" {
		t.Errorf("the turn reads %d messages from %q", len(before), before[0].Content)
	}
	turn.Answer("a25")
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	s := w.session(n)
	for i, m := range s.Messages {
		if want := numbered([]string{"q%d", "a%d"}[i%2], 1+i/2); m.Content != want {
			t.Errorf("message %d is %q, want %q", i, m.Content, want)
		}
	}
}

// TestToolInteractionStorage: calls are part of the answer, and results are messages that follow it in the order of the calls.
func TestToolInteractionStorage(t *testing.T) {
	w := newWorld(t)
	n := telegram(t)
	turn := w.begin(n, "oil and gas?")
	turn.Answer("I look.")
	turn.Call(ToolCall{ID: "a", Name: "price", Input: json.RawMessage(`{"of":"oil"}`)})
	turn.Call(ToolCall{ID: "b", Name: "price"})
	turn.Result("b", "no such thing", true)
	turn.Result("a", "80", false)
	turn.Answer("80")
	if err := turn.End(); err != nil {
		t.Fatal(err)
	}
	var file struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(w.text(n)), &file); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"role":"user","content":"oil and gas?","timestamp":"2026-02-14T10:30:00Z","tool_calls":null}`,
		`{"role":"assistant","content":"I look.","timestamp":"2026-02-14T10:30:00Z","tool_calls":[` +
			`{"id":"a","name":"price","input":{"of":"oil"}},{"id":"b","name":"price","input":{},"failed":true}]}`,
		`{"role":"tool_result","content":"80","timestamp":"2026-02-14T10:30:00Z","tool_calls":null}`,
		`{"role":"tool_result","content":"no such thing","timestamp":"2026-02-14T10:30:00Z","tool_calls":null}`,
		`{"role":"assistant","content":"80","timestamp":"2026-02-14T10:30:00Z","tool_calls":null}`,
	}
	for i, m := range file.Messages {
		if got := strings.Join(strings.Fields(string(m)), ""); i >= len(want) || got != strings.ReplaceAll(want[i], " ", "") {
			t.Errorf("message %d is %s", i, got)
		}
	}
	if len(file.Messages) != len(want) {
		t.Errorf("%d messages", len(file.Messages))
	}
}

// TestToolCallsOfOthers: calls in the form of OpenAI's API, and of programs that keep its arguments beside the name, are read, and
// written in the form of this program.
func TestToolCallsOfOthers(t *testing.T) {
	for call, want := range map[string]string{
		`{"id":"a","type":"function","function":{"name":"price","arguments":"{\"of\": \"oil\"}"}}`: `{"id":"a","name":"price","input":{"of":"oil"}}`,
		`{"id":"a","type":"function","function":{"name":"price","arguments":{"of":"oil"}}}`:        `{"id":"a","name":"price","input":{"of":"oil"}}`,
		`{"id":"a","name":"price","arguments":{"of":"oil"}}`:                                       `{"id":"a","name":"price","input":{"of":"oil"}}`,
		`{"id":"a","name":"price","arguments":"of oil"}`:                                           `{"id":"a","name":"price","input":{"arguments":"of oil"}}`,
		`{"id":"a","function":{"name":"now","arguments":""}}`:                                      `{"id":"a","name":"now","input":{}}`,
		`{"id":"a","function":{"name":"now"}}`:                                                     `{"id":"a","name":"now","input":{}}`,
		`{"id":"a","name":"price","input":{"of":"oil"},"failed":true}`:                             `{"id":"a","name":"price","input":{"of":"oil"},"failed":true}`,
	} {
		w := newWorld(t)
		n := telegram(t)
		w.write(n, `{"session_id":"telegram_123456789","channel":"telegram","chat_id":"123456789","created_at":"2026-02-14T10:30:00Z",`+
			`"last_accessed":"2026-02-14T15:45:00Z","messages":[{"role":"assistant","content":"","timestamp":"2026-02-14T10:30:00Z","tool_calls":[`+call+`]},`+
			`{"role":"tool_result","content":"80","timestamp":"2026-02-14T10:30:00Z","tool_calls":null}]}`)
		if err := w.begin(n, "hi").End(); err != nil {
			t.Fatal(err)
		}
		var file struct {
			Messages []struct {
				Calls []json.RawMessage `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal([]byte(w.text(n)), &file); err != nil || len(file.Messages) != 3 || len(file.Messages[0].Calls) != 1 {
			t.Fatalf("%s: %v\n%s", call, err, w.text(n))
		}
		var got bytes.Buffer
		if err := json.Compact(&got, file.Messages[0].Calls[0]); err != nil || got.String() != want {
			t.Errorf("%s: written as %s, want %s", call, got.String(), want)
		}
	}
}

// TestAutoPersistence: a session is saved every 30 seconds while a turn runs, and nothing waits for that.
func TestAutoPersistence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		n := telegram(t)
		turn := w.begin(n, "a long task")
		for i := range 3 {
			turn.Answer(numbered("part %d", i))
			time.Sleep(saveEvery - time.Nanosecond)
			synctest.Wait()
			if text := w.text(n); strings.Contains(text, numbered("part %d", i)) {
				t.Errorf("part %d was saved before its time", i)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if text := w.text(n); !strings.Contains(text, numbered("part %d", i)) {
				t.Errorf("part %d was not saved after 30 seconds: %s", i, text)
			}
		}
		before, _ := os.Stat(w.path(n))
		time.Sleep(10 * saveEvery)
		synctest.Wait()
		if after, err := os.Stat(w.path(n)); err != nil || !os.SameFile(before, after) {
			t.Errorf("it was written without a change, %v", err)
		}
		if err := turn.End(); err != nil {
			t.Error(err)
		}
	})
}

// TestSessionRecovery: a new process reads all sessions and goes on with them.
func TestSessionRecovery(t *testing.T) {
	w := newWorld(t)
	names := []Name{telegram(t), name(t, "telegram", "2"), name(t, "my-bridge", "../x")}
	for _, n := range names {
		w.say(n, "I am "+n.ID(), "Hello.")
	}
	w.book.Cache = &Cache{} // of the new process
	if l, err := w.book.Load(t.Context()); err != nil || l.String() != "3 channel sessions loaded" {
		t.Errorf("%s, %v", l, err)
	}
	for _, n := range names {
		turn := w.begin(n, "who am I?")
		wantBrief(t, turn.Messages(), "user:I am "+n.ID()+" assistant:Hello.")
		turn.Answer(n.ID())
		if err := turn.End(); err != nil {
			t.Error(err)
		}
		if s := w.session(n); len(s.Messages) != 4 || s.SessionID != n.ID() {
			t.Errorf("%+v", s)
		}
	}
	if got := w.warned(); len(got) > 0 {
		t.Errorf("warned %q", got)
	}
}
