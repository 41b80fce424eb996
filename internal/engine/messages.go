package engine

import (
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// MessageOf returns the message of the conversation that an event tells of: a text, a tool use or a tool result. It reports false
// for any other event.
func MessageOf(e runlog.Event) (m transcript.Message, ok bool) {
	switch e.Type {
	case runlog.Text:
		return transcript.Said(transcript.Assistant, e.Text), true
	case runlog.ToolUse:
		use := transcript.Block{Type: transcript.ToolUse, ID: e.ToolID, Name: e.Tool, Input: e.Input}
		return transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{use}}, true
	case runlog.ToolResult:
		result := transcript.Block{Type: transcript.ToolResult, ToolUseID: e.ToolID, Content: e.Text, IsError: e.IsError}
		return transcript.Message{Role: transcript.User, Content: []transcript.Block{result}}, true
	}
	return m, false
}

// Collect returns a sink that appends the messages of a turn and passes each event on to next. It leaves out the tool uses of a
// subagent, whose work the conversation holds as the result of one tool.
func Collect(messages *[]transcript.Message, next Sink) Sink {
	return func(e runlog.Event) error {
		if m, ok := MessageOf(e); ok && e.Parent == "" {
			if n := len(*messages) - 1; n >= 0 && (*messages)[n].Role == m.Role {
				(*messages)[n].Content = append((*messages)[n].Content, m.Content...)
			} else {
				*messages = append(*messages, m)
			}
		}
		return next(e)
	}
}
