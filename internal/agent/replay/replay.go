// Package replay builds the requests of a recorded run again, with the program and the files of today, and compares them with what was sent.
// The native engine does its work with a transport that compares each request with the recorded one and gives the recorded answer. Tools
// answer from the record. Nothing is executed, nothing is sent, and nothing is written outside of a temporary directory, which is removed.
//
// The inputs of a run are those of the record: the time, the words of people, pending updates, the output of gates, the session before it,
// what was typed for it. All else is made as it would be today: the model, the system prompt, the tools, the wording of the prompt. The first
// difference ends the comparison, because all that follows depends on it. After the requests, the uses of tools are judged by the rules of
// today.
//
// Of a run on another engine only what ollim gives the engine is compared, since the rest is made by another program.
//
// Two parts of a request depend on money and time alone, and say nothing to the agent. The lifetime of a mark of the service's cache is not
// compared. The limit of an answer's length may be lower in the record of a run that had a limit of cost.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Replayer replays the runs of a data directory.
type Replayer struct {
	Home     paths.Dir
	Runs     runlog.Book
	Asked    request.Book
	Sessions transcript.Dir
	Objects  Objects
	Agents   func() []engine.Subagent // the subagents of today
	Hide     func(string) string      // replaces the values of secrets
	Temp     string                   // where the temporary directory is made

	// Again returns a recorded run as it would begin today. system is the system prompt that was sent, "" if it is not known.
	Again func(record runlog.Record, past prompt.Past, system string) (run.Again, error)
	// Engine returns the native engine with a transport in place of a network.
	Engine func(http.RoundTripper) (*native.Engine, error)
}

// Objects has the files that models saw.
type Objects interface {
	Get(hash string) ([]byte, error)
}

// Result is what a replay has found.
type Result struct {
	Run        string      `json:"run"`
	Engine     string      `json:"engine"`
	Same       bool        `json:"same"`
	Requests   int         `json:"requests"`           // that were compared, the one with the difference included
	Of         int         `json:"recorded_requests"`  // that the record has
	Uses       int         `json:"tool_uses"`          // that were judged again
	Only       []string    `json:"compared,omitempty"` // of a run on another engine: what was compared
	Notes      []string    `json:"notes,omitempty"`    // what was not compared, and why
	Difference *Difference `json:"difference,omitempty"`
}

// Difference is the first difference between what was sent and what would be sent today.
type Difference struct {
	Request int    `json:"request,omitempty"` // its number, from 1; 0: it is not in a request
	Field   string `json:"field"`             // of the request; policy: how the use of a tool is judged
	Place   string `json:"place,omitempty"`   // in the field, such as the name of a tool
	Line    int    `json:"line,omitempty"`    // of the text there, from 1; 0: it is no text
	Then    string `json:"then"`
	Now     string `json:"now"`
}

// Unfit is the error of a record that cannot be replayed.
type Unfit struct {
	Run string
	Err error
}

func (e *Unfit) Error() string { return fmt.Sprintf("run %s cannot be replayed: %v", e.Run, e.Err) }

// Unwrap returns the reason.
func (e *Unfit) Unwrap() error { return e.Err }

// ErrRunning is the error of a run that has not ended.
var ErrRunning = errors.New("the run is in progress: replay it when it has ended")

// Reasons for which a record cannot be replayed.
var (
	errPrivate   = errors.New("its conversation is not kept: it was a test question, or one with --no-session")
	errNoPrompt  = errors.New("it has no prompt: the run ended before it asked an agent")
	errNoRequest = errors.New("its requests are not kept")
	errTwice     = errors.New("requests.jsonl has a request twice")
	errBroken    = errors.New("events.jsonl has lines that cannot be read, or lacks some")
)

// Replay replays one run. The error is an *Unfit, ErrRunning, or one of today's files.
func (r Replayer) Replay(ctx context.Context, record runlog.Record) (Result, error) {
	out := Result{Run: record.ID, Engine: record.Engine}
	if record = r.Runs.CutOff(record); !record.Done() {
		return out, ErrRunning
	}
	w := &walk{r: r, record: record, out: &out}
	err := w.read()
	if err == nil {
		err = w.compare(ctx)
	}
	if err != nil {
		return out, err
	}
	if out.Difference == nil {
		out.Difference, err = w.verdicts(ctx)
	}
	out.Same = out.Difference == nil
	return out, err
}

// walk is one replay.
type walk struct {
	r      Replayer
	out    *Result
	record runlog.Record
	kept   kept

	first  int          // the first request with the prompt; 0: there is none
	begins run.Again    // the run as it would begin today, or go on with the owner's answer
	wire   *transport   // nil: the run was on another engine
	using  runlog.Event // the tool that is being used
}

// unfit returns the error of a record that cannot be replayed.
func (w *walk) unfit(err error) error { return &Unfit{w.record.ID, err} }

// compare compares what was sent.
func (w *walk) compare(ctx context.Context) error {
	text, err := w.prompt(1)
	if err != nil {
		return err
	}
	if w.record.Engine != engine.Native {
		return w.given(text)
	}
	if len(w.kept.exchanges) == 0 {
		return w.unfit(errNoRequest)
	}
	temp, err := os.MkdirTemp(w.r.Temp, "ollim-replay-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	return w.talk(ctx, temp, text)
}

// again returns a part of the run as it would begin today. Part 1 is the first, the others go on with answers of the owner.
func (w *walk) again(part int, system string) (run.Again, error) {
	record := w.record
	record.Continued = part - 1
	at := record.Started
	if part > 1 {
		at = w.kept.answered[part-2]
	}
	text, err := w.prompt(part)
	if err != nil {
		return run.Again{}, err
	}
	sections := prompt.Continued(text)
	if part == 1 {
		if sections, err = prompt.SectionsOf(text, record.Parts); err != nil {
			return run.Again{}, w.unfit(err)
		}
	}
	a, err := w.r.Again(record, prompt.Past{Sections: sections, Run: record.ID, Near: at, Pings: record.AllowPing}, system)
	return a, err
}

// prompt returns the recorded prompt of a part.
func (w *walk) prompt(part int) (string, error) {
	text, err := store.Read(w.r.Home.Run(w.record.ID, promptFile(part)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", w.unfit(errNoPrompt)
	case err != nil:
		return "", w.unfit(fmt.Errorf("%s: %s", promptFile(part), store.Cause(err)))
	}
	return string(text), nil
}

// promptFile returns the name of the file with the prompt of a part.
func promptFile(part int) string {
	if part == 1 {
		return "prompt.txt"
	}
	return fmt.Sprintf("prompt-%d.txt", part)
}

// subagent returns the tools of a run as a use in it had them: those of the subagent if one used the tool.
func (w *walk) subagent(tools engine.Tools, parent string) engine.Tools {
	use, known := w.kept.uses[parent]
	if !known {
		return tools
	}
	name := kindOf(use.Input)
	all := w.r.Agents()
	if i := slices.IndexFunc(all, func(a engine.Subagent) bool { return a.Name == name }); i >= 0 {
		return tools.Within(all[i].Tools)
	}
	return tools
}
