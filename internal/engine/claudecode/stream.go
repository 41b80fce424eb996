package claudecode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// turn is what is learnt from the event stream of one process.
type turn struct {
	sink       engine.Sink
	want       string                  // the session id that it must report
	parent     string                  // of a fork
	compacting string                  // the session being compacted; "" in an ordinary turn
	inForce    string                  // what the hook at the start says when our settings are in force
	agent      string                  // the subagent that it must offer; "" if none
	enough     func()                  // stops the process
	delta      func(text string) error // is given text as it arrives; may be nil

	result       engine.Result
	ended        *event // the result event
	apiError     string // of an assistant event: authentication_failed, rate_limit, …
	compaction   *engine.Compaction
	compactError string
	uses         []use
	cost         costs
	settled      bool          // our settings are in force
	answered     bool          // by the service, at least once
	retried      bool          // the command has asked again since the service last answered
	asked        time.Duration // what the service asked to wait, the last time
	fatal        error         // why we stopped it ourselves
}

// use is a tool use that the stream told of, by a subagent or not.
type use struct {
	id, name string
	done     bool // it had a result that was no error
	unheard  bool // it was denied because the hook failed or said nothing, unless there is a verdict
}

// event is the part of a stream-json line that we use. Unknown types and keys are passed over, as the format grows.
type event struct {
	Type       string `json:"type"`
	Subtype    string `json:"subtype"`
	SessionID  string `json:"session_id"`
	Error      string `json:"error"`
	IsError    bool   `json:"is_error"`
	Result     string `json:"result"`
	Status     *int   `json:"api_error_status"`
	ErrorCode  int    `json:"error_status"`
	Errors     []string
	Cost       float64 `json:"total_cost_usd"`
	Compact    string  `json:"compact_result"`
	CompactErr string  `json:"compact_error"`
	Synthetic  bool    `json:"isSynthetic"`
	Stderr     string  `json:"stderr"`             // of a hook
	CalledBy   string  `json:"parent_tool_use_id"` // of a subagent's message: the tool use that started it
	Attempt    int     `json:"attempt"`
	Delay      float64 `json:"retry_delay_ms"`

	Agents json.RawMessage `json:"agents"`

	Servers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
	Message  message `json:"message"`
	Metadata struct {
		Trigger string `json:"trigger"`
		Before  int    `json:"pre_tokens"`
		After   int    `json:"post_tokens"`
	} `json:"compact_metadata"`
	Model  string  `json:"model"`
	Turns  int     `json:"num_turns"`
	Stop   *string `json:"stop_reason"`
	API    int64   `json:"duration_api_ms"`
	Stream struct {
		Delta struct {
			Text string `json:"text"`
		} `json:"delta"`
	} `json:"event"` // a part of a message, where they were asked for
	// Models is the use by model, that of subagents included, which the field usage leaves out though the cost holds it.
	Models map[string]struct {
		In         int     `json:"inputTokens"`
		Out        int     `json:"outputTokens"`
		CacheRead  int     `json:"cacheReadInputTokens"`
		CacheWrite int     `json:"cacheCreationInputTokens"`
		Cost       float64 `json:"costUSD"`
		Window     int     `json:"contextWindow"`
		Output     int     `json:"maxOutputTokens"`
	} `json:"modelUsage"`
}

// message is the model's, or what it is told.
type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   usage           `json:"usage"` // so far
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// errLongLine ends the run: the line may be a use of a tool, which the record would not have.
var errLongLine = fmt.Errorf("the engine printed a line of more than %d bytes", engine.MaxLine)

// read takes events until the stream ends. After a fault of ours it goes on reading, so that the process is not blocked.
func (t *turn) read(r *bufio.Reader) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if t.fatal == nil {
			line = append(line, part...)
		}
		if len(line) > engine.MaxLine {
			t.stopOn(errLongLine)
			line = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		t.takeLine(line)
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// takeLine takes one event. A line that is not an event is ignored.
func (t *turn) takeLine(line []byte) {
	var e event
	if len(line) > 1 && t.fatal == nil && json.Unmarshal(line, &e) == nil {
		t.stopOn(t.take(e))
	}
}

func (t *turn) stopOn(err error) {
	if err != nil {
		t.fatal = err
		t.enough()
	}
}

func (t *turn) take(e event) error {
	switch e.Type {
	case "system":
		return t.system(e)
	case "assistant":
		if e.Error != "" {
			t.apiError = e.Error
			return nil // not the model's words
		}
		t.answered, t.retried, t.asked = true, false, 0
		again := t.cost.answer(e.CalledBy, e.Message)
		return errors.Join(t.blocks(e), t.open(again, e.CalledBy))
	case "user":
		if e.Synthetic && t.compaction != nil && t.compaction.Summary == "" {
			t.compaction.Summary = textOf(e.Message.Content)
		}
		t.cost.tell(e.CalledBy, e.Message)
		return errors.Join(t.blocks(e), t.open(t.answered, e.CalledBy))
	case "stream_event":
		if text := e.Stream.Delta.Text; text != "" && e.CalledBy == "" && t.delta != nil {
			return t.delta(text)
		}
	case "result":
		t.ended = &e
		return t.end(e)
	}
	return nil
}

func (t *turn) system(e event) error {
	switch e.Subtype {
	case "hook_response":
		t.settled = t.settled || strings.TrimSpace(e.Stderr) == t.inForce
	case "init":
		if !t.settled {
			return fmt.Errorf("%w: it does not use our settings, with its boundaries and hooks", engine.ErrUnavailable)
		}
		if status := e.toolServer(); status != "connected" && t.compacting == "" {
			return fmt.Errorf("%w: the tool server is %s, not connected", engine.ErrUnavailable, status)
		}
		if e.SessionID != t.want {
			return fmt.Errorf("the engine works on session %s instead of %s", e.SessionID, t.want)
		}
		if err := e.lacks(t.agent); err != nil {
			return err
		}
		return t.begin(e)
	case "api_retry":
		if e.ErrorCode == 401 { // ten tries of a wrong key take three minutes
			return t.keyRefused()
		}
		t.retried, t.asked = true, time.Duration(e.Delay*float64(time.Millisecond))
		if t.asked <= ownPause(e.Attempt) {
			t.asked = 0
		}
		return t.sink(runlog.Event{Type: runlog.Retry, Text: fmt.Sprintf("%s (%d)", e.Error, e.ErrorCode)})
	case "status":
		if e.Compact == "failed" {
			t.compactError = e.CompactErr
		}
	case "compact_boundary":
		c := engine.Compaction{Session: t.want, Before: e.Metadata.Before, After: e.Metadata.After}
		if t.compacting != "" {
			t.compaction = &c
			return nil
		}
		return t.sink(runlog.Event{Type: runlog.Compacted, Session: e.SessionID, Parent: e.SessionID, Before: c.Before, After: c.After})
	}
	return nil
}

// begin tells of the session, and of the first request.
func (t *turn) begin(e event) error {
	if t.result.Session == e.SessionID {
		return nil
	}
	t.cost.of(e.Model)
	if t.compacting == "" {
		t.result.Session = e.SessionID
		if err := t.sink(runlog.Event{Type: runlog.Session, Session: e.SessionID, Parent: t.parent, Model: e.Model}); err != nil {
			return err
		}
	}
	return t.sink(t.cost.request(""))
}

func (t *turn) keyRefused() error {
	err := fmt.Errorf("%w: the key or login was refused (401)", engine.ErrUnavailable)
	if t.answered {
		return err
	}
	return errors.Join(err, t.sink(runlog.Event{Type: runlog.UsageEvent})) // nothing was spent
}

func (e event) toolServer() (status string) {
	for _, s := range e.Servers {
		if s.Name == server {
			return s.Status
		}
	}
	return "missing"
}

// blocks turns the parts of a message into events.
func (t *turn) blocks(e event) error {
	var parts []block
	_ = json.Unmarshal(e.Message.Content, &parts) // a plain string, an echo of the prompt, has no parts
	for _, b := range parts {
		var err error
		switch b.Type {
		case "text":
			if e.Type == "assistant" && t.compacting == "" && e.CalledBy == "" { // what a subagent says is the tool's result
				err = t.sink(runlog.Event{Type: runlog.Text, Text: b.Text})
			}
		case "thinking":
			if e.CalledBy == "" {
				err = t.sink(runlog.Event{Type: runlog.Thinking, Text: b.Thinking})
			}
		case "tool_use":
			t.uses = append(t.uses, use{id: b.ID, name: b.Name})
			err = t.sink(runlog.Event{Type: runlog.ToolUse, Tool: b.Name, ToolID: b.ID, Input: b.Input, Parent: e.CalledBy})
		case "tool_result":
			t.finished(b)
			err = t.sink(runlog.Event{Type: runlog.ToolResult, Tool: t.nameOf(b.ToolUseID), ToolID: b.ToolUseID, Text: textOf(b.Content), IsError: b.IsError, Parent: e.CalledBy})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) finished(b block) {
	for i := range t.uses {
		if t.uses[i].id == b.ToolUseID {
			t.uses[i].done = !b.IsError
			t.uses[i].unheard = b.IsError && unheard(textOf(b.Content))
		}
	}
}

// unheard knows the two ways in which the command denies a tool for want of a verdict: the hook failed, or had no answer.
func unheard(text string) bool {
	return strings.HasPrefix(text, "PreToolUse:") && strings.Contains(text, " hook error: [") ||
		strings.HasPrefix(text, "Permission to use ") && strings.Contains(text, "running in don't ask mode")
}

func (t *turn) nameOf(id string) string {
	for _, u := range t.uses {
		if u.id == id {
			return u.name
		}
	}
	return ""
}

// textOf is the text of content, which is a string or a list of blocks.
func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []block
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// end takes usage and cost from the result event; those of single messages are provisional.
func (t *turn) end(e event) error {
	t.result.Text, t.result.Cost = e.Result, e.Cost
	models := map[string]runlog.ModelUsage{}
	for name, m := range e.Models {
		u := runlog.Usage{In: m.In, Out: m.Out, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite}
		t.result.Usage = t.result.Usage.Add(u)
		models[name] = runlog.ModelUsage{Usage: u, Cost: m.Cost, Window: m.Window, Output: m.Output}
	}
	stop := ""
	if e.Stop != nil {
		stop = *e.Stop
	}
	return t.sink(runlog.Event{
		Type: runlog.UsageEvent, Usage: &t.result.Usage, Cost: e.Cost, Models: models, Stop: stop, Count: e.Turns, APIMillis: e.API,
	})
}
