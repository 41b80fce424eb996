package engine

import (
	"maps"
	"slices"

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

// Collect returns a sink that appends the messages of a turn and passes each event on to s. It leaves out the tool uses of a
// subagent, whose work the conversation holds as the result of one tool.
func (s Sink) Collect(messages *[]transcript.Message) Sink {
	return func(e runlog.Event) error {
		if m, ok := MessageOf(e); ok && e.Parent == "" {
			if n := len(*messages) - 1; n >= 0 && (*messages)[n].Role == m.Role {
				(*messages)[n].Content = append((*messages)[n].Content, m.Content...)
			} else {
				*messages = append(*messages, m)
			}
		}
		return s(e)
	}
}

// ReportServers records the MCP servers that could not be used, with the reasons by name.
func (s Sink) ReportServers(failed map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		for _, reason := range failed[name] {
			if err := s(runlog.Event{Type: runlog.ServerFailed, Tool: name, Text: reason, IsError: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
