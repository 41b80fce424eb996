package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Plan describes what a run would do.
type Plan struct {
	Job      string   `json:"job"`
	Mode     string   `json:"mode"`
	Engine   string   `json:"engine,omitempty"` // "" for a plain reminder, whose text is sent to the owner
	Model    string   `json:"model,omitempty"`  // "" if the engine has no model
	Thinking string   `json:"thinking,omitempty"`
	Session  string   `json:"session,omitempty"` // session to continue; "" begins a new one
	Branch   bool     `json:"branch,omitempty"`  // Session is branched instead
	Tools    []string `json:"tools"`             // tools that the model would see, sorted
	Refuses  []string `json:"refuses,omitempty"` // tools of Tools that would be refused when called
	Patterns []string `json:"patterns"`          // patterns that decide about each use of a tool
	System   string   `json:"system,omitempty"`
	Prompt   string   `json:"prompt"`
	Refused  string   `json:"refused,omitempty"` // reason for which the job would not run

	Alone bool `json:"-"` // System is made from the task
}

// Preview returns what Run would do, and changes nothing. foresee adds what the run's origin would add to the input. Refused does not say
// whether the origin permits the run.
func (r *Runner) Preview(ctx context.Context, s Spec, foresee func(prompt.Input) prompt.Input) (Plan, error) {
	s = r.complete(s)
	record, err := r.record(ctx, s)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Job: record.Job, Mode: record.Mode, Engine: record.Engine, Model: record.Model, Tools: []string{}, Patterns: record.Tools}
	if s.Plain {
		p.Patterns, p.Prompt = []string{}, s.Input.Task.Body
		return p, nil
	}
	in, err := r.input(s, record)
	if err == nil {
		err = r.previewRequest(ctx, s, &runlog.Run{Record: record}, foresee(in), &p)
	}
	return p, err
}

// previewRequest fills in the request to the engine. If the request or the engine cannot be made, that is the reason in Refused.
func (r *Runner) previewRequest(ctx context.Context, s Spec, run *runlog.Run, in prompt.Input, p *Plan) error {
	set := r.ToolsOf(run, s.Sender)
	request, err := r.requestOf(s, run, set)
	if err != nil {
		p.Refused = plaintext.OneLine(err)
	}
	for _, name := range run.Skills {
		if _, err := r.Skills.Find(name); errors.As(err, new(*plaintext.Unknown)) {
			p.Refused = err.Error()
		}
	}
	request.Session.ID = run.SessionBefore
	if request.Session.ID == "" && run.Parent != "" {
		request.Session.ID, request.Session.Fork = run.Parent, true
	}
	var asked engine.Plan
	made, err := r.engineOf(s)
	if err == nil {
		asked, err = made.Plan(request, set)
	}
	switch {
	case errors.Is(err, engine.ErrSessionUnknown):
		request.Session.ID, request.Session.Fork, in.Session = "", false, prompt.Lost
	case err != nil:
		p.Refused = plaintext.OneLine(err)
	}
	if p.Prompt, err = r.conversations().Preview(ctx, s.Conversation, run.Engine, in); err != nil {
		return err
	}
	p.Model, p.Thinking, p.System = cmp.Or(asked.Model, p.Model), request.Model.Thinking, request.Input.System
	p.Alone = request.Input.SystemOnly
	p.Session, p.Branch = request.Session.ID, request.Session.Fork
	p.Tools = append(p.Tools, asked.Tools...)
	usable := append(tools.BuiltIns(run.Tools), set.Usable()...)
	p.Refuses = slices.DeleteFunc(slices.Clone(asked.Tools), func(name string) bool {
		return slices.Contains(usable, strings.TrimPrefix(name, tools.Prefix))
	})
	return nil
}
