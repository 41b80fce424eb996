package engine_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// TestCollect: events become messages with calls and results; what a subagent does and what nobody says become none.
func TestCollect(t *testing.T) {
	var got []transcript.Message
	var passed int
	full := errors.New("full")
	sink := engine.Sink(func(e runlog.Event) error {
		passed++
		if e.Type == runlog.Result {
			return full
		}
		return nil
	}).Collect(&got)

	input := json.RawMessage(`{"a":1}`)
	for _, e := range []runlog.Event{
		{Type: runlog.Session, Session: "s"}, {Type: runlog.Thinking, Text: "hm"}, {Type: runlog.Text, Text: "let me see"},
		{Type: runlog.ToolUse, Tool: "Task", ToolID: "1", Input: input}, {Type: runlog.ToolUse, Tool: "Read", ToolID: "2", Parent: "1"},
		{Type: runlog.ToolResult, Tool: "Read", ToolID: "2", Text: "x", Parent: "1"}, {Type: runlog.ToolUse, Tool: "Write", ToolID: "3"},
		{Type: runlog.ToolResult, Tool: "Task", ToolID: "1", Text: "done"}, {Type: runlog.ToolResult, Tool: "Write", ToolID: "3", Text: "no", IsError: true},
		{Type: runlog.UsageEvent}, {Type: runlog.Text, Text: "here"},
	} {
		if err := sink(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink(runlog.Event{Type: runlog.Result, Text: "here"}); !errors.Is(err, full) || passed != 12 {
		t.Errorf("%v after %d events", err, passed)
	}
	want := []transcript.Message{
		{Role: transcript.Assistant, Content: []transcript.Block{
			{Type: transcript.TextBlock, Text: "let me see"}, {Type: transcript.ToolUse, ID: "1", Name: "Task", Input: input}, {Type: transcript.ToolUse, ID: "3", Name: "Write"},
		}},
		{Role: transcript.User, Content: []transcript.Block{
			{Type: transcript.ToolResult, ToolUseID: "1", Content: "done"}, {Type: transcript.ToolResult, ToolUseID: "3", Content: "no", IsError: true},
		}},
		transcript.Said(transcript.Assistant, "here"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
