package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/ui"
)

// voice writes an answer in the format that was asked for.
type voice struct {
	d       *deps
	format  string
	partial bool        // stream-json has deltas
	stop    func(error) // called when the reader has gone
	began   time.Time
	root    string          // the working directory of the run
	tools   []string        // tools that it may use
	schema  *payload.Answer // schema of the answer; nil: any text

	tally    tally
	begun    bool // stream-json has named the session
	deltas   deltas
	shown    *ui.Text // the text that a terminal shows as it arrives
	streamed bool     // text of the current block has been written
	err      error    // error of the first write that failed
}

// live reports whether text is shown as it arrives: a terminal shows all of it, a pipe or a file receives the final text alone.
func (v *voice) live() bool { return v.format == "text" && v.schema == nil && isTerminal(v.d.Stdout) }

// delta returns the function that writes text as it arrives; nil if the output does not show that.
func (v *voice) delta() func(string) error {
	switch {
	case v.partial:
		return func(text string) error {
			v.streamDelta(text)
			return nil
		}
	case v.live():
		return func(text string) error {
			v.streamed = true
			v.show(text)
			return nil
		}
	}
	return nil
}

func (v *voice) hear(e runlog.Event) {
	v.tally.hear(e)
	v.d.follow(e)
	switch {
	case v.format == "stream-json":
		v.stream(e)
	case e.Type == runlog.Fork && e.Tool == runlog.ForkContinued && !v.live(): // the turn in main has ended, and that of the fork begins
		v.say(v.tally.text)
		v.tally.text = ""
	case e.Type == runlog.Retry:
		v.d.warn("retried: " + e.Text)
	case e.Type == runlog.FellBack:
		v.d.warn(fellBack(e))
	case e.Type == runlog.Text && v.live():
		if !v.streamed {
			v.show(e.Text)
		}
		v.endShown()
		v.streamed = false
	}
}

// show shows a part of the text on the terminal; endShown shows the rest.
func (v *voice) show(text string) {
	if v.err == nil {
		_, err := io.WriteString(v.shown, text)
		v.note(errors.Join(err, v.d.flush()))
	}
}

func (v *voice) endShown() {
	if v.err == nil {
		v.note(errors.Join(v.shown.End(), v.d.flush()))
	}
}

// say writes a text, and ends its line.
func (v *voice) say(text string) {
	if text == "" || v.err != nil {
		return
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(v.d.Out, text)
	v.note(errors.Join(err, v.d.flush()))
}

func (v *voice) object(o any) {
	if v.err == nil {
		v.note(errors.Join(v.d.emit(o), v.d.flush()))
	}
}

func (v *voice) note(err error) {
	if err != nil && v.err == nil {
		v.err = err
		v.stop(err)
	}
}

func (v *voice) structured() json.RawMessage {
	if v.schema == nil {
		return nil
	}
	value, _ := v.schema.Value(v.tally.text) // a run whose answer does not fit has failed
	return value
}

func (v *voice) end(h app.Home, r runlog.Record, err error) {
	if v.format != "text" {
		v.object(v.result(h, r, err))
		return
	}
	switch {
	case v.live():
		v.endShown()
	case r.Outcome == runlog.OK: // the text of a failed run is not an answer
		v.say(cmp.Or(string(v.structured()), v.tally.text))
	}
}

// The lines of stream-json are those of the claude command, as far as their facts are known.

// systemLine is about the session, not a message of it.
type systemLine struct {
	Type       string   `json:"type"`
	Subtype    string   `json:"subtype"`
	Cwd        string   `json:"cwd,omitempty"`
	SessionID  string   `json:"session_id,omitempty"`
	Tools      []string `json:"tools,omitempty"`
	Model      string   `json:"model,omitempty"`
	Permission string   `json:"permissionMode,omitempty"`
	Error      string   `json:"error,omitempty"`
	Compacted  *compact `json:"compact_metadata,omitempty"`
}

type compact struct {
	Trigger string `json:"trigger"`
	Before  int    `json:"pre_tokens,omitempty"`
	After   int    `json:"post_tokens,omitempty"`
}

// messageLine is a message, or with stream_event a part of one.
type messageLine struct {
	Type      string       `json:"type"`
	Message   *wireMessage `json:"message,omitempty"`
	Event     any          `json:"event,omitempty"`
	Parent    *string      `json:"parent_tool_use_id"`
	SessionID string       `json:"session_id,omitempty"`
	Timestamp string       `json:"timestamp,omitempty"`
}

type wireMessage struct {
	Type    string      `json:"type,omitempty"`
	Role    string      `json:"role"`
	Model   string      `json:"model,omitempty"`
	Content []wireBlock `json:"content"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   *string         `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

func (v *voice) stream(e runlog.Event) {
	system := systemLine{Type: "system", SessionID: v.tally.session}
	switch e.Type {
	case runlog.Session:
		if v.begun { // the session is named already; the answer is asked for again
			return
		}
		v.begun = true
		system.Subtype, system.Cwd, system.Tools, system.Model, system.Permission = "init", v.root, v.tools, e.Model, "dontAsk"
		v.object(system)
	case runlog.Retry, runlog.FellBack:
		system.Subtype, system.Error = "api_retry", e.Text
		v.object(system)
	case runlog.Compacted:
		system.Subtype, system.Compacted = "compact_boundary", &compact{"auto", e.Before, e.After}
		v.object(system)
	case runlog.Text:
		v.said(e, wireBlock{Type: "text", Text: &e.Text})
		v.endBlock()
	case runlog.Thinking:
		v.said(e, wireBlock{Type: "thinking", Thinking: &e.Text})
	case runlog.ToolUse:
		v.said(e, wireBlock{Type: "tool_use", ID: e.ToolID, Name: e.Tool, Input: e.Input})
	case runlog.ToolResult:
		at := e.At
		if at.IsZero() {
			at = v.d.Now()
		}
		line := v.line("user", e)
		line.Message = &wireMessage{Role: "user", Content: []wireBlock{{Type: "tool_result", ToolUseID: e.ToolID, Content: &e.Text, IsError: e.IsError}}}
		line.Timestamp = at.UTC().Format("2006-01-02T15:04:05.000Z")
		v.object(line)
	case runlog.UsageEvent:
		if v.deltas.inMessage {
			v.endBlock()
			v.deltas = deltas{}
			v.part(part{Type: "message_stop"})
		}
	}
}

// line returns the common fields of a line. A line of a subagent names the tool use that started the subagent.
func (v *voice) line(kind string, e runlog.Event) messageLine {
	line := messageLine{Type: kind, SessionID: v.tally.session}
	if e.Parent != "" {
		line.Parent = &e.Parent
	}
	return line
}

func (v *voice) said(e runlog.Event, b wireBlock) {
	line := v.line("assistant", e)
	line.Message = &wireMessage{Type: "message", Role: "assistant", Model: v.tally.model, Content: []wireBlock{b}}
	v.object(line)
}

// deltas tracks which parts of a message have been written.
type deltas struct {
	inMessage, inBlock bool
	index              int // of the block
}

// part is a stream event in the form of the API.
type part struct {
	Type    string       `json:"type"`
	Message *wireMessage `json:"message,omitempty"`
	Index   *int         `json:"index,omitempty"`
	Block   *wireBlock   `json:"content_block,omitempty"`
	Delta   *wireBlock   `json:"delta,omitempty"`
}

func (v *voice) part(p part) {
	line := v.line("stream_event", runlog.Event{})
	line.Event = p
	v.object(line)
}

// streamDelta writes text that has just arrived, and before it what begins its message and its block.
func (v *voice) streamDelta(text string) {
	s := &v.deltas
	if !s.inMessage {
		*s = deltas{inMessage: true}
		v.part(part{Type: "message_start", Message: &wireMessage{Type: "message", Role: "assistant", Model: v.tally.model, Content: []wireBlock{}}})
	}
	index := s.index
	if !s.inBlock {
		s.inBlock = true
		v.part(part{Type: "content_block_start", Index: &index, Block: &wireBlock{Type: "text", Text: new(string)}})
	}
	v.part(part{Type: "content_block_delta", Index: &index, Delta: &wireBlock{Type: "text_delta", Text: &text}})
}

func (v *voice) endBlock() {
	if index := v.deltas.index; v.deltas.inBlock {
		v.deltas.inBlock, v.deltas.index = false, index+1
		v.part(part{Type: "content_block_stop", Index: &index})
	}
}
