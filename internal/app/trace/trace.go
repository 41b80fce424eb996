// Package trace leads from something that the owner was told to where it comes from: the message, the run that sent it, why that run
// began, and the texts that the run had read before and that hold the words of the message. For a slot without a run it leads to the
// reason.
package trace

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// ErrNothing is the error of words that are in no record.
var ErrNothing = errors.New("no message, update, run or job has this name, and no record holds these words")

// The steps of a trace.
const (
	Message = "message" // a text that the owner was told
	Update  = "update"  // a pending update, which a conversation was told
	Run     = "run"     // a run, and why it began
	Slot    = "slot"    // a scheduled instant without a run, or whose run did not reach the agent
	Source  = "source"  // a text that a run had read and that holds words of the message
	Unknown = "unknown" // no text that the run had read holds the words
	Near    = "near"    // a text of a run that holds the words and that is in no message
)

// Step is one step of a trace.
type Step struct {
	Step    string     `json:"step"`
	Kind    string     `json:"kind,omitempty"` // of a message, run or source; of a near text, the type of its event
	At      time.Time  `json:"at,omitzero"`
	ID      string     `json:"id,omitempty"` // of a message or update
	Run     string     `json:"run,omitempty"`
	Name    string     `json:"name,omitempty"` // of the job
	Outcome string     `json:"outcome,omitempty"`
	Slot    *time.Time `json:"slot,omitempty"`
	Why     string     `json:"why,omitempty"`   // why a run began and how it ended, why a slot has no run, or what became of a message
	Tool    string     `json:"tool,omitempty"`  // that returned the source
	Input   string     `json:"input,omitempty"` // of the tool, one line
	Words   []string   `json:"words,omitempty"` // words of the message that the source holds
	Of      int        `json:"of,omitempty"`    // number of words that were looked for
	Text    string     `json:"text,omitempty"`  // one line
	File    string     `json:"file,omitempty"`  // relative to the data directory
	Line    int        `json:"line,omitempty"`  // of File, from 1
	Command string     `json:"command,omitempty"`
}

// Lengths of texts in steps, in characters.
const (
	mostText    = 400
	mostExcerpt = 180
	mostInput   = 120
)

// most is how many sources, near texts and messages of a run are shown.
const most = 3

// Tracer traces texts.
type Tracer struct {
	Home app.Home
	Runs runlog.Book // the runs that may be shown
	// Own restricts the trace to Runs: notices, updates and slots of others are not shown
	Own bool

	steps     []Step
	explained map[string]bool // runs that are in steps
	queue     []told          // updates, read when first needed
}

// Trace returns the steps from what the words of a command line name. The error is ErrNothing if they name nothing.
func (t *Tracer) Trace(ctx context.Context, args []string) ([]Step, error) {
	t.steps, t.explained = nil, map[string]bool{}
	text := strings.Join(args, " ")
	ways := []func(context.Context, string) error{t.byMessage, t.byUpdate, t.byRun, t.byText}
	if len(strings.Fields(text)) != 1 {
		ways = ways[3:]
	}
	for _, way := range ways {
		if err := way(ctx, strings.TrimSpace(text)); err != nil || len(t.steps) > 0 {
			return t.steps, err
		}
	}
	return nil, ErrNothing
}

func (t *Tracer) add(s Step) {
	s.Text, s.Input = plaintext.Short(plaintext.Line(s.Text), mostText), plaintext.Short(plaintext.Line(s.Input), mostInput)
	s.Why, s.Name = plaintext.Line(s.Why), plaintext.Line(s.Name)
	if !s.At.IsZero() {
		s.At = s.At.In(t.Home.Config.Zone)
	}
	t.steps = append(t.steps, s)
}

// load reads the record of a run that may be shown.
func (t *Tracer) load(id string) (runlog.Record, bool) {
	r, err := t.Runs.Load(id)
	return r, err == nil && (t.Runs.Only == nil || t.Runs.Only(r))
}

// events returns the place of the events of a run.
func (t *Tracer) events(run string) string {
	return t.Home.Dir.Relative(t.Home.Dir.Run(run, "events.jsonl"))
}
