package engine

import (
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// MessageOf returns the message of the conversation that an event tells of: a text, a tool use or a tool result. It reports false
// for any other event, and for a tool use of a subagent, whose work the conversation holds as the result of one tool.
func MessageOf(e runlog.Event) (m transcript.Message, ok bool) {
	switch {
	case e.Type == runlog.Text:
		return transcript.Said(transcript.Assistant, e.Text), true
	case e.Type == runlog.ToolUse && e.Parent == "":
		use := transcript.Block{Type: transcript.ToolUse, ID: e.ToolID, Name: e.Tool, Input: e.Input}
		return transcript.Message{Role: transcript.Assistant, Content: []transcript.Block{use}}, true
	case e.Type == runlog.ToolResult && e.Parent == "":
		result := transcript.Block{Type: transcript.ToolResult, ToolUseID: e.ToolID, Content: e.Text, IsError: e.IsError}
		return transcript.Message{Role: transcript.User, Content: []transcript.Block{result}}, true
	}
	return m, false
}

// Collect returns a sink that appends the messages of a turn, as its events tell them, and passes each event on to next.
func Collect(messages *[]transcript.Message, next Sink) Sink {
	return func(e runlog.Event) error {
		if m, ok := MessageOf(e); ok {
			if n := len(*messages) - 1; n >= 0 && (*messages)[n].Role == m.Role {
				(*messages)[n].Content = append((*messages)[n].Content, m.Content...)
			} else {
				*messages = append(*messages, m)
			}
		}
		return next(e)
	}
}
