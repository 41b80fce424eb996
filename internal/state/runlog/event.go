package runlog

import (
	"encoding/json"
	"time"
)

type eventType string

// Events of an engine. All engines use the same ones.
const (
	Text       eventType = "text"
	Thinking   eventType = "thinking"
	ToolUse    eventType = "tool_use"
	ToolResult eventType = "tool_result"
	Request    eventType = "request" // a service is asked; until the next usage it counts as Most, and the answers since the last as Reported
	UsageEvent eventType = "usage"   // without Usage: the request was not answered, and Cost is assumed
	Compacted  eventType = "compacted"
	Session    eventType = "session" // the session's id became known or changed
	ErrorEvent eventType = "error"
	Result     eventType = "result" // the final text of one turn
)

// Events of the tools and of the fire itself.
const (
	Ping          eventType = "ping"         // reserved: the one message of this run
	PingRefused   eventType = "ping_refused" // definitely not sent: the reservation is given back
	Report        eventType = "report"
	Refusal       eventType = "refusal"
	Verdict       eventType = "verdict"      // on a use of a tool; IsError when it was denied
	Asked         eventType = "asked"        // the owner is asked about the use of a tool; Text is the pattern that would allow it
	Permitted     eventType = "permitted"    // what the owner answered: IsError when it was no
	CompactWish   eventType = "compact_wish" // asked for by the agent, done when the turn ends
	CompactFailed eventType = "compact_failed"
	FollowUp      eventType = "follow_up" // At is written in Text: the next reminder of the chain; the last one counts
	Nudge         eventType = "nudge"     // reminded that a report is due
	ForkWish      eventType = "fork_wish" // asked for by the agent, done when the turn ends: Tool is the tool, Text the topic
	Fork          eventType = "fork"      // Tool says what became of the interactive fork, Text has its topic
	Message       eventType = "message"   // a message other than a ping has its number; Tool is its kind
	Delivered     eventType = "delivered" // what became of that message
	Retry         eventType = "retry"
	SessionLost   eventType = "session_lost"
	CarriedOver   eventType = "carried_over" // the message repeats the last turns of Session, which the engine Tool holds
	UpdatesPopped eventType = "updates"
	LeftOut       eventType = "left_out"      // what the engine printed and is not kept
	ServerFailed  eventType = "server_failed" // an MCP server could not be used; Tool is its name, Text the reason
	Verified      eventType = "verify"        // Tool decided whether the run did what it was for: IsError when not, Text is the reason, Count the retry that follows
	Answered      eventType = "answered"      // the run goes on with the owner's answer; Reported is what it has cost so far
)

// AskOwner is the tool of a Ping that asks the owner a question, which is its Text.
const AskOwner = "ask_owner"

// Event is a line of events.jsonl.
type Event struct {
	At        time.Time             `json:"at"`
	Type      eventType             `json:"type"`
	Text      string                `json:"text,omitempty"`
	Tool      string                `json:"tool,omitempty"`
	ToolID    string                `json:"tool_id,omitempty"` // joins a tool_use and its tool_result
	Input     json.RawMessage       `json:"input,omitempty"`   // of a tool, in full
	IsError   bool                  `json:"is_error,omitempty"`
	Session   string                `json:"session,omitempty"`
	Parent    string                `json:"parent,omitempty"` // the session before; of what a subagent does, the tool use that started it
	Usage     *Usage                `json:"usage,omitempty"`
	Cost      float64               `json:"cost,omitempty"`     // USD
	Most      float64               `json:"most,omitempty"`     // USD
	Reported  float64               `json:"reported,omitempty"` // USD
	Count     int                   `json:"count,omitempty"`    // of updates, attempts, answers
	Before    int                   `json:"before,omitempty"`
	After     int                   `json:"after,omitempty"`         // tokens around a compaction
	Context   int                   `json:"context,omitempty"`       // tokens of the conversation: of a session before the turn, of usage after the answer
	Window    int                   `json:"window,omitempty"`        // of usage: tokens that the model can read
	CompactAt int                   `json:"compact_at,omitempty"`    // of usage: tokens at which the conversation is compacted without being asked
	Model     string                `json:"model,omitempty"`         // of a session that began
	Version   string                `json:"version,omitempty"`       // of a session that began: the version of the engine's program
	Effort    string                `json:"effort,omitempty"`        // of a session that began: how much the model was asked to think, in the engine's words
	Models    map[string]ModelUsage `json:"models,omitempty"`        // of usage, where there was more than the session's
	ByTable   float64               `json:"cost_by_table,omitempty"` // of usage: what the table of models makes of it, USD, if that differs from Cost by more than a tenth
	Unpriced  bool                  `json:"unpriced,omitempty"`      // of usage: the model has no known price, so Cost is not the actual cost
	Stop      string                `json:"stop_reason,omitempty"`   // of usage: why the answer ended, in the words of Anthropic's API
	APIMillis int64                 `json:"api_ms,omitempty"`        // of usage: the response time of the service
	File      string                `json:"file,omitempty"`          // in the run's directory: holds Text (or Input) when it is large
}

// unsaid returns the event without any content of the conversation; the error of a failed run stays.
func (e Event) unsaid() Event {
	e.Input = nil
	if e.Type != ErrorEvent && e.Type != Retry {
		e.Text = ""
	}
	return e
}

// ModelUsage is the usage of one model in a turn.
type ModelUsage struct {
	Usage
	Cost   float64 `json:"cost,omitempty"`   // USD
	Window int     `json:"window,omitempty"` // tokens of a conversation
	Output int     `json:"output,omitempty"` // tokens of one answer at most
}

// Standing is the current state of a run, derived from its events.
type Standing struct {
	Started     bool // the model has answered something: text, thinking or a tool use
	Pings       int
	Unreported  int // pings since the last report
	Reports     int
	Nudges      int
	Messages    int // numbered messages, pings included: a number is assigned before the first attempt and never reused
	Popped      int // updates taken out of the queue
	Compactions int
	Wish        string // instructions of the latest compaction that was requested and is not done
	Wished      bool
	Uncompacted bool      // the latest requested compaction failed
	Session     string    // the current one
	FollowUp    time.Time // when the chain continues; zero: it ends
	EnterFork   bool      // the agent asked for an interactive fork
	Topic       string    // of that fork
	LeaveFork   string    // how the agent asked to end the fork: SaveContext or ExitFork; "": it did not
	Effects     bool      // a tool was used: the turn cannot simply be repeated
	Earlier     int       // of Pings: those before the owner's latest answer
	Retries     int       // how often the run went on after it was found not to have done what it was for
	Question    string    // that the run waits with; "" once its agent has read the answer

	answered bool // the answer to Question was handed to the agent, which has said nothing since
}

// stand updates the standing by the next event.
func (s *Standing) stand(e Event) {
	if e.Session != "" && (e.Type == Session || e.Type == Compacted) {
		s.Session = e.Session
	}
	if s.answered && (e.Type == Text || e.Type == Thinking || e.Type == ToolUse) {
		s.Question, s.answered = "", false
	}
	switch e.Type {
	case Answered:
		s.Earlier, s.Effects, s.answered = s.Pings, false, s.Question != ""
	case Verified:
		if e.Count > 0 { // another turn begins
			s.Retries, s.Effects = s.Retries+1, false
		}
	case FollowUp:
		s.FollowUp, _ = time.Parse(time.RFC3339, e.Text)
	case Text, Thinking:
		s.Started = true
	case ToolUse:
		s.Started, s.Effects = true, true
	case Ping:
		s.Pings, s.Unreported = s.Pings+1, s.Unreported+1
		s.Messages++
		if e.Tool == AskOwner {
			s.Question, s.answered = e.Text, false
		}
	case Message:
		s.Messages++
	case UpdatesPopped:
		s.Popped += e.Count
	case PingRefused:
		s.Pings, s.Unreported = s.Pings-1, max(0, s.Unreported-1)
		if e.Tool == AskOwner {
			s.Question = ""
		}
	case Report:
		s.Reports, s.Unreported = s.Reports+1, 0
	case Nudge:
		s.Nudges++
	case ForkWish:
		s.wish(e)
	case CompactWish:
		s.Wish, s.Wished = e.Text, true
	case CompactFailed: // not tried again in this run
		s.Wish, s.Wished, s.Uncompacted = "", false, s.Uncompacted || s.Wished
	case Compacted:
		s.Compactions++
		if e.Session != e.Parent || e.Session == "" { // else it is the engine's own, which leaves the wish open
			s.Wish, s.Wished, s.Uncompacted = "", false, false
		}
	}
}

// Tools by which an agent asks to enter or to end an interactive fork.
const (
	EnterFork   = "enter_fork"
	ExitFork    = "exit_fork"
	SaveContext = "save_context"
)

// wish notes what the agent asked for. A fork that is to be saved is not dropped.
func (s *Standing) wish(e Event) {
	switch e.Tool {
	case EnterFork:
		s.EnterFork, s.Topic = true, e.Text
	case SaveContext, ExitFork:
		if s.LeaveFork != SaveContext {
			s.LeaveFork = e.Tool
		}
	}
}

// What became of an interactive fork, the Tool of a Fork event.
const (
	ForkOpened    = "opened"
	ForkContinued = "continued" // the turn is part of it
	ForkSaved     = "saved"
	ForkReported  = "reported"
	ForkSilent    = "silent" // the owner asked for a report, and there is none
	ForkDropped   = "dropped"
	ForkKept      = "kept"    // it could not be saved; Text says why
	ForkExpired   = "expired" // the session that a reply was for is gone; Text says so
)

// Asking reports whether the run has asked a question that nobody has answered.
func (s Standing) Asking() bool { return s.Question != "" && !s.answered }

// Owes reports whether a run must still report to the main conversation.
func (r Record) Owes(s Standing) bool { return !r.Foreground && s.OwesReport(r.Update) }

// OwesReport reports whether a run must still report in an update mode (behaviour 9.4).
func (s Standing) OwesReport(mode string) bool {
	return mode == "always" && s.Reports == 0 || mode == "on_ping" && s.Unreported > 0
}
