package engine

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Request describes one turn of an agent.
type Request struct {
	Run     Run
	Input   Input
	Session Session
	Model   Model
	Limits  Limits
	Scope   Scope
}

// Run identifies the run that the turn belongs to.
type Run struct {
	ID    string
	Slot  time.Time  // the scheduled time that the run serves; zero if it serves none
	Locks []*os.File // locks that the engine's processes inherit, so that they outlive this process

	// Socket is where the engine's processes have their commands of ollim executed, because they cannot read the run's files; "": they can.
	Socket string

	Vars []string // KEY=value, of the programs that the engine starts for the agent

	Sent Keep // keeps the requests to models, and their answers; nil: none is kept
}

// Keep keeps the body of a request that is about to be sent to a model, which nobody changes any more.
type Keep func(body []byte) Kept

// Kept are the functions that report the progress of a request to its Keep.
type Kept struct {
	Begun    func()               // the answer begins to arrive
	Answered func(request.Answer) // the answer has ended, or there is none; it is called once. Nobody changes the answer; its times are not set
}

// Input is what the agent is told.
type Input struct {
	System      string // the system prompt
	SystemOnly  bool   // System replaces the engine's own instructions; otherwise it is added to them
	Prompt      string
	Attachments []Attachment            // images and documents that belong to the prompt
	Nudge       bool                    // the prompt reminds the agent of something it owes; it begins no turn of its own
	Awaited     bool                    // a person is waiting for the answer
	Delta       func(text string) error // receives the agent's text as it arrives; may be nil. Its error ends the turn
}

// Attachment is a file that comes with the prompt. An engine is given images and PDFs, which the model sees as they are.
type Attachment struct {
	Name string // for the model and the owner
	Type string // media type, such as image/png or application/pdf
	Path string // absolute; of a file that does not change while the turn runs
}

// Session is the conversation that the turn continues. Without an ID and Messages it begins a new one.
type Session struct {
	ID       string               // the session to continue or to branch
	Fork     bool                 // branch the session instead of continuing it
	Follow   bool                 // continue or branch the latest compaction of the session
	Messages []transcript.Message // the conversation so far, oldest first, after that of the ID; the turn's session is then not kept
	Discard  bool                 // do not keep a session that the turn begins
	Pace     Pace                 // how the conversation goes on
	Full     Full                 // when the session is compacted without being asked; it does not count for a branch
}

// Model selects the model.
type Model struct {
	Name     string // an id or an alias; "" selects the engine's default
	Thinking string // as in job files; "" selects the engine's default
}

// Limits bounds the run. Amounts are in USD.
type Limits struct {
	MaxCost  float64       // of the whole run; 0 means no limit
	Spent    float64       // by earlier turns of the run
	Reserved float64       // when the run began
	Strict   bool          // the job has a cost limit of its own, which is enforced or the run is refused
	MaxTurns int           // answers of the model in this turn; 0 selects the engine's own limit
	Patience time.Duration // total wait for an overloaded service; 0 waits as long as the run may take

	// Raise raises the run's reservation to between least and most, Spent included. It returns the granted amount, which other
	// runs then cannot spend, or an ErrMaxCost. With nil only MaxCost limits the run.
	Raise func(ctx context.Context, least, most float64) (granted float64, err error)
}

// Scope is what the agent may use.
type Scope struct {
	Root      string        // the working directory
	Dirs      []policy.Root // directories outside Root that file tools may use, absolute
	Protected []string      // absolute paths that no file tool may reach
	BuiltIns  []string      // the engine's own tools that at least one pattern of the run's policy allows
	Allow     []string      // patterns of the tool uses that the run's policy allows
	Servers   []string      // patterns of the tools of MCP servers that the model is offered
	Subagent  *Subagent     // to whom the agent may delegate; nil if to nobody
	Seal      *seal.Seal    // under which the engine starts programs; nil if they are not sealed
	Offline   bool          // sealed programs connect only to what was started in the run

	Hints Hints // for the results of commands; nil: none
}

// Hints says what the seal has closed to a command of the agent, and what opens it, for the model to read.
type Hints func(command, output string, failed bool) []string

// WithHints adds to the result of a command what the seal has closed to it.
func WithHints(result string, hints []string) string {
	for _, hint := range hints {
		result = strings.TrimPrefix(result+"\nollim: seal: "+hint, "\n")
	}
	return result
}

// Subagent is an agent that the engine offers to the agent.
type Subagent struct {
	Name        string
	Description string
	Prompt      string   // its system prompt
	Model       string   // "" selects the model of the turn
	Tools       []string // of the engine's own; nil means all that the run has, empty means none
}

// Kept reports whether the session that the turn begins is kept.
func (s Session) Kept() bool { return !s.Discard && s.Messages == nil }

// Begins reports whether the turn writes a session of its own rather than continuing one.
func (s Session) Begins() bool { return s.ID == "" || s.Fork }

// Parent returns the session that the turn branches, "" if it branches none.
func (s Session) Parent() string {
	if s.Fork {
		return s.ID
	}
	return ""
}

// Env returns the environment variables that tell commands which run they belong to.
func (r Run) Env() []string {
	env := []string{"OLLIM_RUN=" + r.ID}
	if !r.Slot.IsZero() {
		env = append(env, "OLLIM_SLOT="+r.Slot.UTC().Format(time.RFC3339))
	}
	if r.Socket != "" {
		env = append(env, SocketVariable+"="+r.Socket)
	}
	return append(env, r.Vars...)
}

// SocketVariable names the socket of a sealed run to the commands of ollim in it.
const SocketVariable = "OLLIM_SOCKET"

// Affordable returns an ErrMaxCost unless the run may spend something besides Spent and more.
func (l Limits) Affordable(more float64) error {
	if spent := l.Spent + more; l.MaxCost > 0 && spent >= l.MaxCost {
		return fmt.Errorf("%w: %s of %s USD", ErrMaxCost, USD(spent), USD(l.MaxCost))
	}
	return nil
}

// USD formats an amount with the digits that a small one needs.
func USD(amount float64) string {
	digits := 2
	if amount > 0 && amount < 0.1 {
		digits = 4
	}
	for most := 0.001; amount > 0 && amount < most && digits < 12; most /= 10 {
		digits++
	}
	return strconv.FormatFloat(amount, 'f', digits, 64)
}
