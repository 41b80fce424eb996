package runlog

import (
	"encoding/json"
	"time"
)

type eventType string

// Types of the events that every engine writes.
const (
	Text       eventType = "text"
	Thinking   eventType = "thinking"
	ToolUse    eventType = "tool_use"
	ToolResult eventType = "tool_result"
	// a request was sent; until the next usage event its cost counts as Most, and that of the answers since the last usage as Reported
	Request    eventType = "request"
	UsageEvent eventType = "usage" // an event without Usage means that the request was not answered and Cost is assumed
	Compacted  eventType = "compacted"
	Session    eventType = "session" // the session's id became known or changed
	ErrorEvent eventType = "error"
	Result     eventType = "result" // the final text of one turn
)

// Types of the events that tools and the run itself write.
const (
	Ping          eventType = "ping"         // reserved: the one message of this run
	PingRefused   eventType = "ping_refused" // the ping was certainly not sent: its reservation is returned
	Report        eventType = "report"
	Refusal       eventType = "refusal"
	Verdict       eventType = "verdict"      // the decision about the use of a tool; IsError if it was denied
	Asked         eventType = "asked"        // the owner was asked about the use of a tool; Text is the pattern that would allow it
	Permitted     eventType = "permitted"    // the owner's answer to Asked: IsError if it was no
	CompactWish   eventType = "compact_wish" // the agent asked for a compaction, which is done when the turn ends
	CompactFailed eventType = "compact_failed"
	FollowUp      eventType = "follow_up" // the agent asked for the chain's next reminder at the time in Text; the last such event counts
	Nudge         eventType = "nudge"     // the agent was reminded that a report is due
	// the agent asked to enter or end a fork, which is done when the turn ends: Tool is the tool, Text the topic
	ForkWish  eventType = "fork_wish"
	Fork      eventType = "fork"      // Tool says what became of the interactive fork; Text is its topic
	Message   eventType = "message"   // a message other than a ping got its number; Tool is its kind
	Delivered eventType = "delivered" // the result of delivering that message
	Retry     eventType = "retry"
	// the turn goes on with Model instead of the model Tool, which cannot be used for the reason in Text
	FellBack      eventType = "fallback"
	SessionLost   eventType = "session_lost"
	CarriedOver   eventType = "carried_over" // the prompt repeats the last turns of Session, which belongs to the engine Tool
	UpdatesPopped eventType = "updates"
	LeftOut       eventType = "left_out"      // output of the engine that is not kept
	ServerFailed  eventType = "server_failed" // an MCP server could not be used; Tool is its name, Text the reason
	// Tool is the checker that decided whether the run achieved its purpose: IsError if not, Text is the reason, Count the number of the
	// retry that follows
	Verified eventType = "verify"
	Answered eventType = "answered" // the run continues with the owner's answer; Reported is its cost so far
)

// StaysOverloaded stands in the reason of a fallback from a model whose service was overloaded until the end of the retries.
const StaysOverloaded = "stays overloaded"

// AskOwner is the Tool of a Ping that asks the owner a question. Text is the question.
const AskOwner = "ask_owner"

// Event is a line of events.jsonl.
type Event struct {
	At      time.Time       `json:"at"`
	Type    eventType       `json:"type"`
	Text    string          `json:"text,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	ToolID  string          `json:"tool_id,omitempty"` // the same in a tool_use and its tool_result
	Input   json.RawMessage `json:"input,omitempty"`   // the complete input of a tool
	IsError bool            `json:"is_error,omitempty"`
	Session string          `json:"session,omitempty"`
	// the previous session; for an event of a subagent, the tool use that started it
	Parent   string  `json:"parent,omitempty"`
	Usage    *Usage  `json:"usage,omitempty"`
	Cost     float64 `json:"cost,omitempty"`     // USD
	Most     float64 `json:"most,omitempty"`     // USD
	Reported float64 `json:"reported,omitempty"` // USD
	Count    int     `json:"count,omitempty"`    // number of updates, attempts or answers
	Before   int     `json:"before,omitempty"`
	After    int     `json:"after,omitempty"` // tokens after a compaction, as Before is before it
	// tokens in the conversation: before the turn in a session event, after the answer in a usage event
	Context int `json:"context,omitempty"`
	Window  int `json:"window,omitempty"` // in a usage event: tokens that the model can read
	// in a usage event: tokens at which the engine compacts the conversation by itself
	CompactAt int    `json:"compact_at,omitempty"`
	Model     string `json:"model,omitempty"`   // in a session event
	Version   string `json:"version,omitempty"` // in a session event: the version of the engine's program
	// in a session event: how much the model was asked to think, in the engine's terms
	Effort string                `json:"effort,omitempty"`
	Models map[string]ModelUsage `json:"models,omitempty"` // in a usage event, if models other than the session's were used
	// in a usage event: USD by the table of models, if that differs from Cost by more than a tenth
	ByTable float64 `json:"cost_by_table,omitempty"`
	// in a usage event: the price of the model is unknown, so Cost is not the actual cost
	Unpriced bool `json:"unpriced,omitempty"`
	// in a usage event: why the answer ended, a stop_reason of Anthropic's API
	Stop      string `json:"stop_reason,omitempty"`
	APIMillis int64  `json:"api_ms,omitempty"` // in a usage event: response time of the service, in milliseconds
	// name of a file in the run's directory that holds Text or Input, if that is large
	File string `json:"file,omitempty"`
}

// unsaid returns the event without the content of the conversation. The error of a failed run is kept.
func (e Event) unsaid() Event {
	e.Input = nil
	if e.Type != ErrorEvent && e.Type != Retry && e.Type != FellBack {
		e.Text = ""
	}
	return e
}

// ModelUsage is the usage of one model in a turn.
type ModelUsage struct {
	Usage
	Cost   float64 `json:"cost,omitempty"`   // USD
	Window int     `json:"window,omitempty"` // context window, in tokens
	Output int     `json:"output,omitempty"` // longest answer, in tokens
}

// Standing is the current state of a run, derived from its events.
type Standing struct {
	Started     bool // the model has produced text, thinking or a tool use
	Pings       int
	Unreported  int // pings since the last report
	Reports     int
	Nudges      int
	Messages    int // how many messages have numbers, pings included; a number is assigned before the first attempt and never reused
	Popped      int // updates that were taken from the queue
	Compactions int
	Wish        string // instructions of the latest requested compaction that is not done yet
	Wished      bool
	Uncompacted bool      // the latest requested compaction failed
	Session     string    // id of the current session
	FollowUp    time.Time // when the chain's next reminder is due; zero if the chain ends
	EnterFork   bool      // the agent asked to enter an interactive fork
	Topic       string    // topic of that fork
	LeaveFork   string    // how the agent asked to end the fork: SaveContext or ExitFork; "" if it did not
	Effects     bool      // a tool was used, so the turn cannot simply be repeated
	Earlier     int       // how many of Pings were sent before the owner's latest answer
	Retries     int       // how often the run continued after its checker rejected it
	Question    string    // the question that the run waits with; "" once the agent has read the answer

	answered bool // the agent was given the answer to Question, and has produced nothing since
}

// stand applies the next event to the standing.
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
		if e.Count > 0 { // a new turn begins
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
	case CompactFailed: // a compaction that failed is not tried again in this run
		s.Wish, s.Wished, s.Uncompacted = "", false, s.Uncompacted || s.Wished
	case Compacted:
		s.Compactions++
		if e.Session != e.Parent || e.Session == "" { // otherwise the engine compacted by itself, and the agent's request is still open
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

// wish records what the agent asked for. A request to save the fork is not replaced by one to drop it.
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

// The results of an interactive fork, which are values of Tool in a Fork event.
const (
	ForkOpened    = "opened"
	ForkContinued = "continued" // the turn is part of the fork
	ForkSaved     = "saved"
	ForkReported  = "reported"
	ForkSilent    = "silent" // the owner asked for a report, and the fork has none
	ForkDropped   = "dropped"
	ForkKept      = "kept"    // the fork could not be saved; Text says why
	ForkExpired   = "expired" // the session that the reply belongs to no longer exists; Text says so
)

// Asking reports whether the run has an unanswered question.
func (s Standing) Asking() bool { return s.Question != "" && !s.answered }

// Owes reports whether a run must still report to the main conversation.
func (r Record) Owes(s Standing) bool { return !r.Foreground && s.OwesReport(r.Update) }

// OwesReport reports whether a run with this update mode must still report to the main conversation.
func (s Standing) OwesReport(mode string) bool {
	return mode == "always" && s.Reports == 0 || mode == "on_ping" && s.Unreported > 0
}
