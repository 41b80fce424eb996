package backtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// outcome is what the agent decided now, and what that cost.
type outcome struct {
	decisions []Decision
	cost      float64 // USD
	usage     runlog.Usage
	live      []string
}

// unrecorded is the error of a use of a tool that has no answer in the record.
type unrecorded struct {
	tool  string
	input json.RawMessage
	why   string
}

func (e *unrecorded) Error() string {
	return fmt.Sprintf("%s: %s %s", e.why, e.tool, plaintext.Short(canonical(e.input), shownInput))
}

const shownInput = 200 // characters of an input in a message

// errAsked ends a run that has asked its owner a question, as the question ends the turn of a real one.
var errAsked = errors.New("the owner was asked")

// moreTurns is how many answers of the model a run may have beyond twice as many as then.
const moreTurns = 10

// ask lets the agent work on a recorded run.
func (b *Backtest) ask(ctx context.Context, c recorded, paid asked, money *budget) (out outcome, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	set := newReplay(c, stop)
	if b.Refuses != nil {
		set.refuses = func(tool string, input []byte) string { return b.Refuses(c.Record, tool, input) }
	}
	if b.Live != nil {
		set.live = func(tool string, input []byte) (engine.ToolResult, bool) {
			if !slices.Contains(b.Plan.Live, tool) {
				return engine.ToolResult{}, false
			}
			return b.Live(ctx, c.Record, tool, input), true
		}
	}
	reserved := money.open()
	defer func() { reserved.close(out.cost) }()
	r := engine.Request{
		Input:   engine.Input{System: c.sent.System, Prompt: c.prompt},
		Session: engine.Session{Messages: c.history, Discard: true},
		Model:   engine.Model{Name: c.sent.Model, Thinking: c.sent.Thinking},
		Limits:  engine.Limits{MaxCost: b.MaxCost, MaxTurns: 2*c.Record.Requests + moreTurns, Raise: reserved.raise},
	}
	for nudges := 0; ; nudges++ {
		result, runErr := b.turn(ctx, r, set, paid, &out)
		out.decisions, out.live = set.decisions, set.used
		if errors.Is(runErr, errAsked) {
			return out, nil
		}
		if runErr != nil {
			return out, runErr
		}
		if c.Record.Foreground && result.Text != "" {
			out.decisions = append(slices.Clone(set.decisions), Decision{Answered, "", result.Text})
		}
		if nudges == tools.MostNudges || !c.Record.Owes(set.standing()) {
			return out, nil
		}
		said := transcript.Said(transcript.User, r.Input.Prompt)
		r.Session.Messages = append(append(slices.Clone(r.Session.Messages), said), result.Messages...)
		r.Input.Prompt, r.Input.Nudge = prompt.Nudge(job.UpdateMode(c.Record.Update)), true
		r.Limits.Spent = out.cost
	}
}

// turn lets the agent work on one message. A stored answer costs nothing again.
func (b *Backtest) turn(ctx context.Context, r engine.Request, set engine.Tools, paid asked, out *outcome) (engine.Result, error) {
	a, fresh := b.Asker, false
	a.Engine.Service.Provider = cachedProvider{a.Engine.Service.Provider, paid, &fresh}
	a.Spent = func(ev runlog.Event) error {
		if ev.Type != runlog.UsageEvent {
			return nil // the requests of several runs at once are not told apart
		}
		out.cost += ev.Cost
		if ev.Usage != nil {
			out.usage = out.usage.Add(*ev.Usage)
		}
		if fresh {
			return b.Spent(ev)
		}
		return nil
	}
	return a.Ask(ctx, r, set)
}

// replay answers uses of tools from a record.
type replay struct {
	root    string // the working directory
	offered []engine.Tool
	calls   map[string][]RecordedCall // by tool and input
	of      map[string][]RecordedCall // by tool
	stop    context.CancelCauseFunc
	live    func(tool string, input []byte) (engine.ToolResult, bool) // nil: no tool is used now

	refuses   func(tool string, input []byte) string // nil: nothing is refused
	decisions []Decision
	changed   map[string]bool // files that were written otherwise than then
	used      []string        // tools that were used now
}

func newReplay(c recorded, stop context.CancelCauseFunc) *replay {
	r := &replay{root: c.Root, calls: map[string][]RecordedCall{}, of: map[string][]RecordedCall{}, stop: stop, changed: map[string]bool{}}
	for _, t := range c.sent.Tools {
		t.Effect = engine.ReadsOnly // nothing happens
		r.offered = append(r.offered, t)
	}
	for _, use := range c.Calls {
		key := KeyOf(c.Root, use.Tool, use.Input)
		r.calls[key] = append(r.calls[key], use)
		r.of[short(use.Tool)] = append(r.of[short(use.Tool)], use)
	}
	return r
}

// KeyOf returns what is the same for uses of a tool that ask for the same thing. The description and the timeout of a command do not count,
// nor whether the path of a file is relative to root.
func KeyOf(root, tool string, input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) == nil {
		if tool == "Bash" {
			delete(fields, "description")
			delete(fields, "timeout")
		}
		for _, name := range []string{"file_path", "notebook_path", "path"} {
			var path string
			if json.Unmarshal(fields[name], &path) == nil {
				fields[name], _ = json.Marshal(under(root, path)) // a string always has a JSON form
			}
		}
		if plain, err := json.Marshal(fields); err == nil {
			input = plain
		}
	}
	return short(tool) + " " + canonical(input)
}

// take returns the next recorded answer of a list; the last one answers all further uses.
func take(from map[string][]RecordedCall, key string) (engine.ToolResult, bool) {
	list := from[key]
	if len(list) == 0 {
		return engine.ToolResult{}, false
	}
	if len(list) > 1 {
		from[key] = list[1:]
	}
	return engine.ToolResult{Text: list[0].Text, IsError: list[0].Failed}, true
}

// Call answers a use of a tool.
func (r *replay) Call(_ context.Context, name string, input json.RawMessage) engine.ToolResult {
	path, before := pathOf(r.root, input), r.decisions
	r.decisions = decide(r.decisions, r.root, name, input)
	kind, usual, is := own(short(name))
	switch {
	case is:
		result, found := take(r.of, short(name))
		if !found {
			result.Text = usual
		}
		if kind == Asked && !result.IsError {
			r.stop(errAsked)
		}
		return result
	case writes(name):
		result, found := take(r.calls, KeyOf(r.root, name, input))
		if found {
			return result
		}
		if result = r.refusal(name, path, input); result.IsError {
			r.decisions = before
			return result
		}
		r.changed[path] = true
		return engine.ToolResult{Text: "The file " + path + " was written."}
	case r.changed[path], len(r.changed) > 0 && slices.Contains([]string{"Bash", "Grep", "Glob"}, name):
		return r.unknown(name, input, "it wrote other content to a file than in the recorded run, and may read it now")
	}
	if result, found := take(r.calls, KeyOf(r.root, name, input)); found {
		return result
	}
	if r.live != nil {
		if result, found := r.live(name, input); found {
			if !slices.Contains(r.used, name) {
				r.used = append(r.used, name)
			}
			return result
		}
	}
	return r.unknown(name, input, "not in the record")
}

// refusal returns why a file would not have been written; not an error if it would.
func (r *replay) refusal(name, path string, input json.RawMessage) engine.ToolResult {
	why := ""
	switch {
	case path == "":
		why = "file_path is missing"
	case r.refuses != nil:
		why = r.refuses(name, input)
	}
	return engine.ToolResult{Text: why, IsError: why != ""}
}

func (r *replay) unknown(name string, input json.RawMessage, why string) engine.ToolResult {
	r.stop(&unrecorded{name, input, why})
	return engine.ToolResult{Text: why, IsError: true}
}

// pathOf returns the file that a use of a tool names, relative to root if it is below it; "" if it names none.
func pathOf(root string, input json.RawMessage) string {
	var in struct {
		File     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	_ = json.Unmarshal(input, &in)
	return under(root, in.File+in.Notebook)
}

// under returns a path relative to root, or an absolute one that is not below it as it is.
func under(root, path string) string {
	if path == "" {
		return ""
	}
	if rest, err := filepath.Rel(root, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rest) {
		return rest
	}
	return filepath.Clean(path)
}

// standing returns what the agent has done, as far as its duties depend on it.
func (r *replay) standing() (s runlog.Standing) {
	for _, d := range r.decisions {
		switch d.Kind {
		case Pinged, Asked:
			s.Pings, s.Unreported = s.Pings+1, s.Unreported+1
		case Reported:
			s.Reports, s.Unreported = s.Reports+1, 0
		}
	}
	return s
}

// The other methods of engine.Tools. Call refuses what the run may not do.

func (r *replay) List() []engine.Tool                 { return r.offered }
func (r *replay) Judged() (map[string]bool, error)    { return nil, nil }
func (r *replay) Within([]string) engine.Tools        { return r }
func (*replay) Nudge(context.Context) (string, error) { return "", nil }

func (*replay) Verdict(context.Context, string, string, json.RawMessage) (string, error) {
	return "", nil
}
