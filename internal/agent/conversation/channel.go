package conversation

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Channel is the session of a chat in a channel. Its messages are the context of a turn on every engine; no engine keeps a session.
type Channel struct {
	unkept // the engine's session ends with the turn

	Book channel.Book
	Name channel.Name
	Zone *time.Location // of the times that the agent reads

	turn    *channel.Turn
	unsaved error
}

// Traits returns those of a run outside the main conversation.
func (*Channel) Traits() Traits { return Traits{Mode: "channel"} }

// Key returns the key of the session.
func (c *Channel) Key() string { return c.Name.Key() }

// Open returns the messages of the session.
func (c *Channel) Open(context.Context) (h History, err error) {
	if c.turn, err = c.Book.Open(c.Name); err != nil {
		return h, err
	}
	h.Messages = c.messages(c.turn.Messages())
	return h, nil
}

// Hear stores the user's message.
func (c *Channel) Hear(ctx context.Context, in prompt.Input) {
	c.turn.Begin(ctx, prompt.Words(in), in.Now)
}

// Note stores what the agent says and does. The work of a subagent is stored as the result of one tool.
func (c *Channel) Note(e runlog.Event) {
	if e.Parent != "" {
		return
	}
	switch e.Type {
	case runlog.Request:
		c.turn.Ask()
	case runlog.Text:
		c.turn.Answer(e.Text)
	case runlog.ToolUse:
		c.turn.Call(channel.ToolCall{ID: e.ToolID, Name: e.Tool, Input: e.Input})
	case runlog.ToolResult:
		c.turn.Result(e.ToolID, e.Text, e.IsError)
	}
}

// Restart drops what the agent has said and done.
func (c *Channel) Restart() { c.turn.Restart() }

// End saves the session.
func (c *Channel) End() { c.unsaved = c.turn.End() }

// Unsaved returns why the session could not be saved at the end of the turn.
func (c *Channel) Unsaved() error { return c.unsaved }

// messages returns a conversation in the form of engines. A turn that was cut off ends in an answer that says so, so that two messages
// of the user are never merged. Each message of the user has the form of its prompt.
func (c *Channel) messages(stored []channel.Message) []transcript.Message {
	all := []transcript.Message{} // not nil, even if it is empty: the engine keeps no session
	closed := func() {
		if n := len(all); n > 0 && all[n-1].Role == transcript.User {
			all = append(all, transcript.Said(transcript.Assistant, transcript.CutOff))
		}
	}
	for i, m := range stored {
		switch m.Role {
		case channel.User:
			closed()
			all = append(all, transcript.Said(transcript.User, prompt.Stamped(m.Timestamp.In(c.Zone), m.Content)))
		case channel.Assistant:
			all = append(all, answer(m, stored[i+1:])...)
		}
	}
	closed()
	return all
}

// answer returns an answer. If it has calls, the message of their results follows; rest begins with the results.
func answer(m channel.Message, rest []channel.Message) []transcript.Message {
	said := transcript.Message{Role: transcript.Assistant}
	if m.Content != "" {
		said = transcript.Said(transcript.Assistant, m.Content)
	}
	results := transcript.Message{Role: transcript.User}
	for i, call := range m.ToolCalls {
		use, _ := engine.MessageOf(runlog.Event{Type: runlog.ToolUse, ToolID: call.ID, Tool: call.Name, Input: call.Input})
		said.Content = append(said.Content, use.Content...)
		result := runlog.Event{Type: runlog.ToolResult, ToolID: call.ID, Text: channel.Unanswered, IsError: true}
		if i < len(rest) && rest[i].Role == channel.ToolResult {
			result.Text, result.IsError = rest[i].Content, call.Failed
		} else {
			rest = nil
		}
		answered, _ := engine.MessageOf(result)
		results.Content = append(results.Content, answered.Content...)
	}
	switch {
	case len(said.Content) == 0:
		return nil
	case len(results.Content) == 0:
		return []transcript.Message{said}
	}
	return []transcript.Message{said, results}
}
