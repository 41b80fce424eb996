package fire

import (
	"context"
	"strings"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/run"
)

// Plan is what a fire would do.
type Plan struct {
	Job     string   `json:"job"`
	Mode    job.Mode `json:"mode"`
	Engine  string   `json:"engine"`
	Model   string   `json:"model,omitempty"`
	Session string   `json:"session,omitempty"` // that it would continue or branch; "" begins one
	Names   []string `json:"tools"`             // of ours, that it may use
	Prompt  string   `json:"prompt"`
	Refused string   `json:"refused,omitempty"` // why it would not run
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
	e := errand{job: j, options: o, beside: shelf.Jobs, previous: f.lastRun(j)}
	record, err := f.record(e)
	if err != nil {
		return Plan{}, err
	}
	brief, err := f.brief(e, record)
	if err != nil {
		return Plan{}, err
	}
	text, session, err := f.room().Preview(ctx, f.place(e), brief)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Job: j.ID, Mode: j.Mode(), Engine: record.Engine, Model: record.Model, Session: session, Prompt: text}
	p.Names = f.tools(&run.Run{Record: record}).Usable()
	if err := f.permit(j, o); err != nil {
		p.Refused = err.Error()
	}
	return p, nil
}

// lastRun is the job's latest run, as its lock file notes it; the zero Record when there is none.
func (f *Firer) lastRun(j job.Job) run.Record {
	r, err := f.Runs.Load(strings.TrimSpace(lock.ReadNote(f.Home.JobLock(j.ID))))
	if err != nil {
		return run.Record{}
	}
	return r
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
