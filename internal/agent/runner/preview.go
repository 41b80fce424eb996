package runner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/skill"
)

// Plan is what a fire would ask its engine for.
type Plan struct {
	Job      string   `json:"job"`
	Mode     job.Mode `json:"mode"`
	Engine   string   `json:"engine,omitempty"` // "" for a plain reminder, whose text is delivered
	Model    string   `json:"model,omitempty"`  // that is asked; "": the engine has none
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

// Preview says what Fire would do now, without doing or changing anything.
func (f *Firer) Preview(ctx context.Context, name string, o Options) (Plan, error) {
	shelf, err := f.Jobs.Load()
	if err != nil {
		return Plan{}, err
	}
	j, err := shelf.Find(name)
	if err != nil {
		return Plan{}, err
	}
	e := errand{job: j, options: o, beside: shelf.Jobs, previous: f.lastRun(j), slot: o.Slot}
	record, err := f.record(e)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Job: j.ID, Mode: j.Mode(), Engine: record.Engine, Model: record.Model, Tools: []string{}, Patterns: record.Tools}
	if j.Plain {
		p.Patterns, p.Prompt = []string{}, j.Body
	} else if err := f.previewRequest(ctx, e, &runlog.Run{Record: record}, &p); err != nil {
		return Plan{}, err
	}
	if err := f.permit(j, o); err != nil {
		p.Refused = err.Error()
	}
	return p, nil
}

// previewRequest fills in what the engine would be asked. A request or an engine that cannot be made is why the job would not run.
func (f *Firer) previewRequest(ctx context.Context, e errand, r *runlog.Run, p *Plan) error {
	brief, err := f.brief(e, r.Record)
	if err != nil {
		return err
	}
	set := f.tools(r)
	request, err := f.request(e, r, set, 0)
	if err != nil {
		p.Refused = oneLine(err)
	}
	for _, name := range e.job.Skills {
		if _, err := (skill.Library{Home: f.Home}).Find(name); errors.As(err, new(*skill.Unknown)) {
			p.Refused = err.Error()
		}
	}
	request.Session.ID = r.SessionBefore
	if request.Session.ID == "" && r.Parent != "" {
		request.Session.ID, request.Session.Fork = r.Parent, true
	}
	var plan engine.Plan
	made, err := f.engine(e, r.Engine)
	if err == nil {
		plan, err = made.Plan(request, set)
	}
	switch {
	case errors.Is(err, engine.ErrSessionUnknown):
		request.Session.ID, request.Session.Fork, brief.Lost = "", false, true
	case err != nil:
		p.Refused = oneLine(err)
	}
	if p.Prompt, err = f.room().Preview(ctx, f.place(e), brief); err != nil {
		return err
	}
	p.Model, p.Thinking, p.System = cmp.Or(plan.Model, p.Model), request.Model.Thinking, request.Input.System
	p.Session, p.Branch = request.Session.ID, request.Session.Fork
	p.Tools = append(p.Tools, plan.Tools...)
	usable := append(tools.BuiltIns(r.Tools), set.Usable()...)
	p.Refuses = slices.DeleteFunc(slices.Clone(plan.Tools), func(name string) bool {
		return slices.Contains(usable, strings.TrimPrefix(name, "mcp__ollim__"))
	})
	return nil
}

// lastRun is the job's latest run, as its lock file notes it; the zero Record when there is none.
func (f *Firer) lastRun(j job.Job) runlog.Record {
	r, err := f.Runs.Load(strings.TrimSpace(lock.ReadNote(f.Home.JobLock(j.ID))))
	if err != nil {
		return runlog.Record{}
	}
	return r
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
