package runner

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

// Plan is what a fire would ask its engine for.
type Plan struct {
	Job      string   `json:"job"`
	Mode     string   `json:"mode"`
	Engine   string   `json:"engine,omitempty"` // "" for a plain reminder, whose text is delivered
	Model    string   `json:"model,omitempty"`  // "": the engine has none
	Thinking string   `json:"thinking,omitempty"`
	Session  string   `json:"session,omitempty"` // that is continued; "" begins one
	Branch   bool     `json:"branch,omitempty"`  // Session is branched instead
	Tools    []string `json:"tools"`             // that the model is offered, sorted
	Refuses  []string `json:"refuses,omitempty"` // those of Tools that this run may not use: they are refused when called
	Patterns []string `json:"patterns"`          // that decide on each use of a tool
	System   string   `json:"system,omitempty"`
	Prompt   string   `json:"prompt"`
	Refused  string   `json:"refused,omitempty"` // why it would not run
}

// Preview returns what Fire would do now. It does and changes nothing.
func (r *Runner) Preview(ctx context.Context, name string, o Options) (Plan, error) {
	files, err := r.Jobs.Load()
	if err != nil {
		return Plan{}, err
	}
	j, err := files.Find(name)
	if err != nil {
		return Plan{}, err
	}
	f := &fire{Runner: r, job: j, options: o, all: files.Jobs, previous: r.lastRun(j.ID), slot: o.Slot}
	s := r.complete(f.spec())
	record, err := r.record(ctx, s)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Job: j.ID, Mode: record.Mode, Engine: record.Engine, Model: record.Model, Tools: []string{}, Patterns: record.Tools}
	if j.Plain {
		p.Patterns, p.Prompt = []string{}, j.Body
	} else if err := f.previewRequest(ctx, s, &runlog.Run{Record: record}, &p); err != nil {
		return Plan{}, err
	}
	if err := f.permit(); err != nil {
		p.Refused = err.Error()
	}
	return p, nil
}

// previewRequest fills in what the engine would be asked. A request or an engine that cannot be made is why the job would not run.
func (f *fire) previewRequest(ctx context.Context, s Spec, run *runlog.Run, p *Plan) error {
	in, err := f.input(s, run.Record)
	if err != nil {
		return err
	}
	in = f.foresee(in)
	set := f.toolsOf(run, s.Sender)
	request, err := f.requestOf(s, run, set)
	if err != nil {
		p.Refused = oneLine(err)
	}
	for _, name := range f.job.Skills {
		if _, err := f.Skills.Find(name); errors.As(err, new(*plaintext.Unknown)) {
			p.Refused = err.Error()
		}
	}
	request.Session.ID = run.SessionBefore
	if request.Session.ID == "" && run.Parent != "" {
		request.Session.ID, request.Session.Fork = run.Parent, true
	}
	var plan engine.Plan
	made, err := f.engineOf(s)
	if err == nil {
		plan, err = made.Plan(request, set)
	}
	switch {
	case errors.Is(err, engine.ErrSessionUnknown):
		request.Session.ID, request.Session.Fork, in.Session = "", false, prompt.Lost
	case err != nil:
		p.Refused = oneLine(err)
	}
	if p.Prompt, err = f.conversations().Preview(ctx, s.Conversation, in); err != nil {
		return err
	}
	p.Model, p.Thinking, p.System = cmp.Or(plan.Model, p.Model), request.Model.Thinking, request.Input.System
	p.Session, p.Branch = request.Session.ID, request.Session.Fork
	p.Tools = append(p.Tools, plan.Tools...)
	usable := append(tools.BuiltIns(run.Tools), set.Usable()...)
	p.Refuses = slices.DeleteFunc(slices.Clone(plan.Tools), func(name string) bool {
		return slices.Contains(usable, strings.TrimPrefix(name, "mcp__ollim__"))
	})
	return nil
}
