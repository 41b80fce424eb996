package conversation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// TestPreface: the message of a turn that begins a conversation says so, with a tag unless it has one.
func TestPreface(t *testing.T) {
	for tag, want := range map[string]string{"": "[begun] [", "button": "[button] ["} {
		c := &topic{history: History{Tag: "begun", Preface: "This is a fork."}}
		turn, asked := begin(t, c, answers{turns: [][]runlog.Event{named("s")}, fails: []error{nil}})
		if err := turn.Say(t.Context(), prompt.Input{Task: prompt.Task{Tag: tag, Body: "Go."}}); err != nil {
			t.Fatal(err)
		}
		text := (*asked)[0].Input.Prompt
		if !strings.HasPrefix(text, want) || !strings.Contains(text, "This is a fork.\n\nGo.") {
			t.Errorf("tag %q: prompt %q", tag, text)
		}
	}
}

// TestBranchAgain: if the engine does not have the session, its parent is branched again. The history names the parent.
func TestBranchAgain(t *testing.T) {
	c := &topic{history: History{Session: "old", Parent: "p"}}
	turn, asked := begin(t, c, answers{turns: [][]runlog.Event{nil, named("new")}, fails: []error{engine.ErrSessionUnknown, nil}})
	if err := turn.Say(t.Context(), prompt.Input{}); err != nil {
		t.Fatal(err)
	}
	if r := (*asked)[1].Session; r.ID != "p" || !r.Fork {
		t.Errorf("the second request: %+v", r)
	}
	for e, err := range turn.book.Sessions.History(nil) {
		if err != nil || e.SessionID != "new" || e.ParentSessionID != "p" {
			t.Errorf("the history: %+v, %v", e, err)
		}
	}
}

// TestResume: a further message of a turn has no attachments. The engine is given what was said if it keeps no session.
func TestResume(t *testing.T) {
	for _, discard := range []bool{false, true} {
		c := &topic{history: History{Discard: discard}}
		turn, asked := begin(t, c, answers{turns: [][]runlog.Event{named("s"), nil}, fails: []error{nil, nil}})
		turn.Request.Input.Attachments = []engine.Attachment{{Name: "a.png"}}
		if err := turn.Say(t.Context(), prompt.Input{Task: prompt.Task{Body: "Go."}}); err != nil {
			t.Fatal(err)
		}
		if err := turn.Resume(t.Context(), "Report.", true); err != nil {
			t.Fatal(err)
		}
		first, second := (*asked)[0], (*asked)[1]
		if len(first.Input.Attachments) != 1 || first.Input.Nudge || second.Input.Prompt != "Report." || len(second.Input.Attachments) != 0 || !second.Input.Nudge {
			t.Errorf("asked %+v", *asked)
		}
		said := second.Session.Messages
		if discard && (len(said) != 1 || said[0].Content[0].Text != first.Input.Prompt) || !discard && said != nil {
			t.Errorf("discarded %v: given %+v", discard, said)
		}
	}
}

// TestShown: updates count as shown when the agent has begun to answer.
func TestShown(t *testing.T) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for _, fails := range []error{nil, engine.ErrUnavailable} {
		var shown time.Time
		c := &topic{policy: UpdatePolicy{Show: Peek, Shown: func(_ context.Context, until time.Time) error { shown = until; return nil }}}
		turn, _ := begin(t, c, answers{turns: [][]runlog.Event{named("s")}, fails: []error{fails}})
		if err := turn.Say(t.Context(), prompt.Input{}); !errors.Is(err, fails) {
			t.Fatal(err)
		}
		if fails == nil && !shown.Equal(at) || fails != nil && !shown.IsZero() {
			t.Errorf("%v: shown until %s", fails, shown)
		}
	}
}

// TestResumed: a run that goes on is shown the updates that are newer than its last turn.
func TestResumed(t *testing.T) {
	since := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	r := Resumed{Conversation: Branch{}, Session: "s", Since: since}
	if h, err := r.Open(t.Context()); h.Session != "s" || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
	if u := r.Updates(); u.Show != Peek || !u.Since.Equal(since) {
		t.Errorf("%+v", u)
	}
}

// TestForkOfATurn: a turn belongs to one fork, and one that begins it comes first.
func TestForkOfATurn(t *testing.T) {
	for name, tc := range map[string]struct {
		open  session.Fork
		first bool
		want  History
		fails bool
	}{
		"begins":          {open: session.Fork{ID: "f", Parent: "p"}, first: true, want: History{Parent: "p"}},
		"continues":       {open: session.Fork{ID: "f", Parent: "p", Session: "s", Turns: 1}, want: History{Session: "s"}},
		"begins again":    {open: session.Fork{ID: "f", Parent: "p", Session: "s"}, want: History{Session: "s", Parent: "p"}},
		"has begun":       {open: session.Fork{ID: "f", Session: "s", Turns: 1}, first: true, fails: true},
		"of another fork": {open: session.Fork{ID: "g", Session: "s", Turns: 1}, fails: true},
	} {
		dir := paths.Dir(t.TempDir())
		book := session.Book{Home: dir, Zone: time.UTC, Disk: store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}}
		if err := book.OpenFork(t.Context(), tc.open); err != nil {
			t.Fatal(err)
		}
		c := &Fork{Sessions: book, ID: "f", First: tc.first, Busy: func() bool { return false }}
		h, err := c.Open(t.Context())
		if errors.Is(err, session.ErrNoFork) != tc.fails || h.Session != tc.want.Session || h.Parent != tc.want.Parent {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
		if begins := tc.want.Parent != ""; (h.Tag == "fork-started") != begins || (h.Preface != "") != begins {
			t.Errorf("%s: tag %q, preface %q", name, h.Tag, h.Preface)
		}
	}
}

// TestChannelKeepsItsMessages: the next turn is given what was said and done, without what subagents did.
func TestChannelKeepsItsMessages(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	book := channel.Book{Home: dir, Disk: store.Disk{Now: func() time.Time { return now }, Warn: func(m string) { t.Error(m) }}}
	name, err := channel.NewName("telegram", "987")
	if err != nil {
		t.Fatal(err)
	}
	open := func() (*Channel, []transcript.Message) {
		c := &Channel{Book: book, Name: name, Zone: time.UTC}
		h, err := c.Open(t.Context())
		if err != nil || h.Messages == nil {
			t.Fatalf("%+v, %v", h, err)
		}
		return c, h.Messages
	}
	c, _ := open()
	c.Hear(t.Context(), prompt.Input{Now: now, Task: prompt.Task{Body: "Look."}})
	for _, e := range []runlog.Event{
		{Type: runlog.Request}, {Type: runlog.ToolUse, ToolID: "1", Tool: "Read", Input: []byte(`{}`)},
		{Type: runlog.Text, Text: "of a subagent", Parent: "1"}, {Type: runlog.ToolResult, ToolID: "1", Text: "no such file", IsError: true},
		{Type: runlog.Request}, {Type: runlog.Text, Text: "There is none."},
	} {
		c.Note(e)
	}
	c.End()
	if err := c.Unsaved(); err != nil {
		t.Fatal(err)
	}
	c, messages := open()
	var got []string
	for _, m := range messages {
		for _, b := range m.Content {
			got = append(got, strings.Join([]string{m.Role, b.Type, b.Text + b.Content}, " "))
			if b.Type == "tool_result" && !b.IsError {
				t.Error("the result of the call is no error")
			}
		}
	}
	if want := []string{"assistant tool_use ", "user tool_result no such file", "assistant text There is none."}; !slices.Equal(got[1:], want) {
		t.Errorf("messages %q, want %q", got[1:], want)
	}
	c.Hear(t.Context(), prompt.Input{Now: now, Task: prompt.Task{Body: "And now?"}})
	c.End()
	if _, messages = open(); len(messages) != 6 || messages[5].Content[0].Text != transcript.CutOff {
		t.Errorf("after a turn without an answer: %+v", messages)
	}
}
