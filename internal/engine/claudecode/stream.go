package claudecode

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/state/runlog"
)

// turn is what the event stream of one process has reported so far.
type turn struct {
	sink  engine.Sink
	delta func(text string) error // receives text as it arrives; may be nil
	stop  func()                  // stops the process
	want  wanted

	phase      phase
	result     engine.Result
	uses       []use
	cost       costs
	length     int    // length of the conversation, in tokens
	model      string // model of the session
	outage     outage
	compaction compaction
	ended      ended
	counted    bool  // the command has reported what the process used
	fatal      error // error for which ollim stopped the process
}

// wanted is what the process must report when it begins, and facts for the record.
type wanted struct {
	session   string
	parent    string // parent session of a fork
	length    int    // tokens in the conversation so far, for the record
	settings  string // text that the hook at the start prints if ollim's settings are in force
	window    int    // window of the model in tokens, as far as it is used; 0 if unknown
	compactAt int    // tokens at which the command compacts the session; 0 if it was not told
	effort    string // for the record
	version   string // version of the command; "" accepts any
	subagent  *engine.Subagent

	serverless bool // ollim's tool server is not needed
}

// phase is the progress of a process.
type phase int

const (
	starting phase = iota
	guarded        // ollim's settings are in force
	answered       // the service has answered at least once
)

// outage describes a service that does not answer.
type outage struct {
	retried bool          // the command has sent the request again since the last answer
	wait    time.Duration // wait that the service asked for most recently
}

// compaction describes the compaction of a session.
type compaction struct {
	of      string // id of the session; "" in an ordinary turn
	made    *engine.Compaction
	failure string
}

// ended is what the command reports about its end.
type ended struct {
	event    *event // the result event
	apiError string // error of an assistant event: authentication_failed, rate_limit, …
}

// use is a tool use in the stream, by the agent or a subagent.
type use struct {
	id, name string
	done     bool // its result is not an error
	unheard  bool // the result says that the hook failed or printed nothing; a verdict disproves that
}

// event is the part of a stream-json line that ollim uses. Unknown types and keys are ignored, because the format grows.
type event struct {
	Type       string `json:"type"`
	Subtype    string `json:"subtype"`
	SessionID  string `json:"session_id"`
	Version    string `json:"claude_code_version"`
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
	Stderr     string  `json:"stderr"`             // set in an event of a hook
	CalledBy   string  `json:"parent_tool_use_id"` // tool use that started the subagent whose message it is
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
	} `json:"event"` // a part of a message, if partial messages were requested
	// includes subagents, which the cost includes and the field usage does not
	Models map[string]consumed `json:"modelUsage"`
	// the part of Models since the last result; nil in versions that do not report it
	Added map[string]consumed `json:"model_usage_since_last_result"`
}

// message is one message of the conversation.
type message struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`
	Usage   usage           `json:"usage"` // usage so far
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

// read handles events until the stream ends. After an error it continues to read, so that the process does not block.
func (t *turn) read(r *bufio.Reader) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if t.fatal == nil {
			line = append(line, part...)
		}
		if len(line) > command.MaxLine {
			// It may be a tool use, which would be missing in the record.
			t.stopOn(fmt.Errorf("the engine printed a line of more than %d bytes", command.MaxLine))
			line = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		var e event
		if len(line) > 1 && t.fatal == nil && json.Unmarshal(line, &e) == nil { // a line that is not JSON is not an event
			t.stopOn(t.take(e))
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *turn) stopOn(err error) {
	if err != nil {
		t.fatal = err
		t.stop()
	}
}

func (t *turn) take(e event) error {
	switch e.Type {
	case "system":
		return t.system(e)
	case "assistant":
		if e.Error != "" {
			t.ended.apiError = e.Error
			return nil // the text was not written by the model
		}
		if t.outage = (outage{}); t.phase == guarded {
			t.phase = answered
		}
		if n := e.Message.Usage.tokens(); n > 0 && e.CalledBy == "" {
			t.length = n
		}
		again := t.cost.answer(e.CalledBy, e.Message)
		return errors.Join(t.blocks(e), t.open(again, e.CalledBy))
	case "user":
		if e.Synthetic && t.compaction.made != nil && t.compaction.made.Summary == "" {
			t.compaction.made.Summary = textOf(e.Message.Content)
		}
		t.cost.tell(e.CalledBy, e.Message)
		return errors.Join(t.blocks(e), t.open(t.phase == answered, e.CalledBy))
	case "stream_event":
		if text := e.Stream.Delta.Text; text != "" && e.CalledBy == "" && t.delta != nil {
			return t.delta(text)
		}
	case "result":
		t.ended.event = &e
		return t.end(e)
	}
	return nil
}

func (t *turn) system(e event) error {
	switch e.Subtype {
	case "hook_response":
		if t.phase == starting && strings.TrimSpace(e.Stderr) == t.want.settings {
			t.phase = guarded
		}
	case "init":
		if t.phase == starting {
			return fmt.Errorf("%w: it does not use our settings with the deny rules and hooks", engine.ErrSetup)
		}
		if status := e.toolServer(); status != "connected" && !t.want.serverless {
			return fmt.Errorf("%w: the tool server is %s, not connected", engine.ErrSetup, status)
		}
		if t.want.version != "" && e.Version != "" && e.Version != t.want.version {
			return otherVersion{checked: t.want.version, found: e.Version}
		}
		if e.SessionID != t.want.session {
			return fmt.Errorf("the engine works on session %s instead of %s", e.SessionID, t.want.session)
		}
		if err := e.lacks(t.want.subagent); err != nil {
			return err
		}
		return t.begin(e)
	case "api_retry":
		if e.ErrorCode == 401 { // the command's ten tries with a wrong key would take three minutes
			err := fmt.Errorf("%w: the key or login was refused (401)", engine.ErrKey)
			if t.phase == answered {
				return err
			}
			return errors.Join(err, t.sink(runlog.Event{Type: runlog.UsageEvent})) // the request cost nothing
		}
		t.outage = outage{retried: true, wait: time.Duration(e.Delay * float64(time.Millisecond))}
		if t.outage.wait <= ownPause(e.Attempt) {
			t.outage.wait = 0
		}
		return t.sink(runlog.Event{Type: runlog.Retry, Text: fmt.Sprintf("%s (%d)", e.Error, e.ErrorCode)})
	case "status":
		if e.Compact == "failed" {
			t.compaction.failure = e.CompactErr
		}
	case "compact_boundary":
		c := engine.Compaction{Session: t.want.session, Before: e.Metadata.Before, After: e.Metadata.After}
		if t.compaction.of != "" {
			t.compaction.made = &c
			return nil
		}
		return t.sink(runlog.Event{Type: runlog.Compacted, Session: e.SessionID, Parent: e.SessionID, Before: c.Before, After: c.After})
	}
	return nil
}

// begin records the session and the first request.
func (t *turn) begin(e event) error {
	if t.result.Session == e.SessionID {
		return nil
	}
	t.model = e.Model
	t.cost.of(e.Model)
	if t.compaction.of == "" {
		t.result.Session = e.SessionID
		if err := t.sink(runlog.Event{Type: runlog.Session, Session: e.SessionID, Parent: t.want.parent, Model: e.Model, Version: e.Version, Effort: t.want.effort, Context: t.want.length}); err != nil {
			return err
		}
	}
	return t.sink(t.cost.request(""))
}

func (e event) toolServer() (status string) {
	for _, s := range e.Servers {
		if s.Name == server {
			return s.Status
		}
	}
	return "missing"
}

// blocks records the parts of a message.
func (t *turn) blocks(e event) error {
	var parts []block
	_ = json.Unmarshal(e.Message.Content, &parts) // content that is a string repeats the prompt, and has no blocks
	for _, b := range parts {
		var err error
		switch b.Type {
		case "text":
			// the text of a subagent is recorded as the result of its tool
			if e.Type == "assistant" && t.compaction.of == "" && e.CalledBy == "" {
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
			u, text := t.use(b.ToolUseID), textOf(b.Content)
			u.done, u.unheard = !b.IsError, b.IsError && unheard(text)
			err = t.sink(runlog.Event{Type: runlog.ToolResult, Tool: u.name, ToolID: b.ToolUseID, Text: text, IsError: b.IsError, Parent: e.CalledBy})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// use returns the tool use with an id. An unknown one has no name.
func (t *turn) use(id string) *use {
	i := slices.IndexFunc(t.uses, func(u use) bool { return u.id == id })
	if i < 0 {
		return &use{}
	}
	return &t.uses[i]
}

// unheard reports whether the command denied a tool use because the hook failed or did not answer.
func unheard(text string) bool {
	return strings.HasPrefix(text, "PreToolUse:") && strings.Contains(text, " hook error: [") ||
		strings.HasPrefix(text, "Permission to use ") && strings.Contains(text, "running in don't ask mode")
}

// textOf returns the text of content, which is a string or a list of blocks.
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

// end records usage and cost from the result event, because those of single messages are provisional.
func (t *turn) end(e event) error {
	added := t.cost.plausible(t.cost.added(e))
	added.Cost += t.cost.unreported(added)
	t.result.Text, t.result.Cost = e.Result, t.result.Cost+added.Cost
	if t.result.Session != "" && e.Subtype == "error_during_execution" && added.input() == 0 {
		return nil // it was stopped before the end of an answer, whose cost the command does not report: the request stays open
	}
	t.counted = true
	var all runlog.Usage
	models := map[string]runlog.ModelUsage{}
	for name, m := range added.Models {
		used := runlog.Usage(m.usage())
		all = all.Add(used)
		models[name] = runlog.ModelUsage{Usage: used, Cost: m.Cost, Window: m.Window, Output: m.Output}
	}
	t.result.Usage = t.result.Usage.Add(all)
	stop := ""
	if e.Stop != nil {
		stop = *e.Stop
	}
	return t.sink(runlog.Event{
		Type: runlog.UsageEvent, Usage: &all, Cost: added.Cost, ByTable: t.cost.doubt(added), Models: models, Stop: stop, Count: e.Turns,
		APIMillis: e.API, Context: t.length, Window: t.window(e.Models[t.model].Window), CompactAt: t.want.compactAt,
	})
}
